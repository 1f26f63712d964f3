//! The one table of routes. The router, the role that each route asks for, and the description all come from it, so that
//! they cannot differ.

use super::{
    Api, applications, asking, cancelling, following, guard::guard, looking, metrics, problem::Problem, story,
};
use crate::dashboard;
use crate::document::Role;
use axum::{
    Router,
    http::StatusCode,
    middleware::from_fn_with_state,
    routing::{MethodRouter, delete, get, post},
};
use utoipa::openapi::HttpMethod::{self, Delete, Get, Post};

/// One route.
pub(super) struct Route {
    pub(super) method: HttpMethod,
    pub(super) path: &'static str,
    /// What a token must allow; nothing for a route that is open to all.
    pub(super) role: Option<Role>,
    pub(super) says: &'static str,
    /// What can be said after the `?`, with its meaning.
    pub(super) query: &'static [(&'static str, &'static str)],
    /// The document that its body is.
    pub(super) takes: Option<&'static str>,
    pub(super) gives: Gives,
    /// Whether it plans, which may take minutes.
    is_long: bool,
    behind: fn() -> MethodRouter<Api>,
}

/// What a route answers when all is well.
#[derive(Clone, Copy)]
pub(super) enum Gives {
    /// One document.
    One(u16, &'static str),
    /// A list of documents.
    List(&'static str),
    /// One of two documents, depending on what was asked.
    Either(&'static [(u16, &'static str)]),
    /// Plain text.
    Text,
    /// A stream of events.
    Events,
    /// A description in the OpenAPI format.
    Description,
    /// Nothing.
    Nothing,
}

const fn route(
    (method, path): (HttpMethod, &'static str),
    role: Option<Role>,
    says: &'static str,
    gives: Gives,
    behind: fn() -> MethodRouter<Api>,
) -> Route {
    Route { method, path, role, says, query: &[], takes: None, gives, is_long: false, behind }
}

const READ: Option<Role> = Some(Role::Read);
const OPERATE: Option<Role> = Some(Role::Operate);
const ADMIN: Option<Role> = Some(Role::Admin);
const ACCEPTED: Gives = Gives::One(202, "Accepted");
const PLANNED: Gives = Gives::Either(&[(202, "Submitted"), (200, "Plan")]);
const DRY_RUN: &[(&str, &str)] = &[("dry-run", "true: change nothing, and answer what would happen")];

/// A request about applications, which is planned first.
const fn verb(path: &'static str, says: &'static str, takes: &'static str, behind: fn() -> MethodRouter<Api>) -> Route {
    Route { query: DRY_RUN, takes: Some(takes), is_long: true, ..route((Post, path), OPERATE, says, PLANNED, behind) }
}

/// Every route there is.
pub(super) fn table() -> Vec<Route> {
    vec![
        route((Get, "/v1/health"), None, "Whether the manager answers", Gives::One(200, "Well"), || {
            get(looking::health)
        }),
        route((Get, "/v1/openapi.json"), None, "This description", Gives::Description, || get(looking::description)),
        route((Get, "/v1/status"), READ, "Everything at a glance", Gives::One(200, "Status"), || get(looking::status)),
        route((Get, "/metrics"), READ, "Numbers for Prometheus, in the OpenMetrics format", Gives::Text, || {
            get(metrics::metrics)
        }),
        route((Get, "/v1/vms"), READ, "Every VM", Gives::List("Vm"), || get(looking::vms)),
        route((Post, "/v1/vms/{name}/lost"), OPERATE, "Declare a VM lost", ACCEPTED, || post(asking::lost)),
        route((Get, "/v1/components"), READ, "Every component", Gives::List("Component"), || get(looking::components)),
        route(
            (Get, "/v1/components/{name}"),
            READ,
            "One component with all that it needs and offers",
            Gives::One(200, "ComponentDetail"),
            || get(looking::component),
        ),
        route(
            (Get, "/v1/components/{name}/definition"),
            // A recipe may hold what only those should know who could write it.
            OPERATE,
            "One component as it could be added again",
            Gives::One(200, "NewComponent"),
            || get(looking::definition),
        ),
        Route {
            query: &[("bytes", "at most so many bytes; 65536 if nothing is said")],
            ..route(
                (Get, "/v1/components/{name}/logs"),
                READ,
                "The end of what a component's operations wrote",
                Gives::Text,
                || get(looking::logs),
            )
        },
        route(
            (Get, "/v1/components/{name}/drift"),
            READ,
            "In what a component is not as it was asked for, one thing on each line",
            Gives::Text,
            || get(looking::drift),
        ),
        route(
            (Post, "/v1/components/{name}/retry"),
            OPERATE,
            "Try the failed operation of a component again",
            ACCEPTED,
            || post(asking::retry),
        ),
        route(
            (Post, "/v1/components/{name}/skip"),
            OPERATE,
            "Let the failed operation of a component count as done",
            ACCEPTED,
            || post(asking::skip),
        ),
        route(
            (Get, "/v1/why/{name}"),
            READ,
            "Why everything of a name is as it is: the chain of reasons, and what a person can do",
            Gives::List("Why"),
            || get(looking::why),
        ),
        verb("/v1/apply", "Make an application as its files describe it", "ApplyRequest", || post(applications::apply)),
        verb("/v1/scale", "Change how many components there are", "ScaleRequest", || post(applications::scale)),
        verb("/v1/rollback", "Go back to an earlier version of an application", "RollbackRequest", || {
            post(applications::rollback)
        }),
        verb("/v1/reconcile", "Make applications or components again as they were applied", "ReconcileRequest", || {
            post(applications::reconcile)
        }),
        verb("/v1/drain", "Move all components of a VM elsewhere", "DrainRequest", || post(applications::drain)),
        verb("/v1/undrain", "Use a drained VM again", "DrainRequest", || post(applications::undrain)),
        verb("/v1/remove", "Remove an application", "RemoveRequest", || post(applications::remove)),
        Route {
            takes: Some("CheckRequest"),
            is_long: true,
            ..route(
                (Post, "/v1/check"),
                READ,
                "Whether what runs is what was asked for",
                Gives::One(200, "Drift"),
                || post(applications::check),
            )
        },
        route(
            (Get, "/v1/planning"),
            READ,
            "The plans that the manager is working on",
            Gives::List("PlanningDocument"),
            || get(applications::planning),
        ),
        route(
            (Get, "/v1/applications"),
            READ,
            "Every application, with its versions and its rollout",
            Gives::List("ApplicationDocument"),
            || get(applications::applications),
        ),
        route(
            (Get, "/v1/applications/{name}"),
            // Its files hold recipes, which only those should see who could write them.
            OPERATE,
            "One application, with its files",
            Gives::One(200, "ApplicationDocument"),
            || get(applications::application),
        ),
        route((Get, "/v1/bindings"), READ, "Every binding", Gives::List("Binding"), || get(looking::bindings)),
        route((Get, "/v1/changes"), READ, "Every change that is not done", Gives::List("RunningChange"), || {
            get(looking::changes)
        }),
        Route {
            query: DRY_RUN,
            takes: Some("NewChange"),
            is_long: true,
            ..route(
                (Post, "/v1/changes"),
                OPERATE,
                "Make a change",
                Gives::Either(&[(202, "Accepted"), (200, "Plan")]),
                || post(asking::make),
            )
        },
        route(
            (Get, "/v1/changes/{id}"),
            READ,
            "One change, and what happened while it ran",
            Gives::One(200, "ChangeRecord"),
            || get(looking::change),
        ),
        Route {
            is_long: true,
            ..route(
                (Get, "/v1/changes/{id}/story"),
                READ,
                "What happened in a change, from the journals: operations, messages, before and after",
                Gives::One(200, "ChangeStory"),
                || get(story::story),
            )
        },
        Route {
            query: DRY_RUN,
            is_long: true,
            ..route(
                (Post, "/v1/changes/{id}/cancel"),
                OPERATE,
                "Cancel a change; with dry-run, say what that would do",
                Gives::Either(&[(202, "Cancellation"), (200, "Cancellation")]),
                || post(cancelling::cancel),
            )
        },
        route(
            (Post, "/v1/changes/{id}/promote"),
            OPERATE,
            "Let a rollout go on that waits after its canaries, or whose next step was refused",
            ACCEPTED,
            || post(cancelling::promote),
        ),
        Route {
            query: &[("limit", "at most so many; 50 if nothing is said")],
            ..route((Get, "/v1/history"), READ, "Past changes, the newest first", Gives::List("ChangeRecord"), || {
                get(looking::history)
            })
        },
        Route {
            query: &[("after", "begin after this event; with the next one that happens, if nothing is said")],
            ..route(
                (Get, "/v1/events"),
                READ,
                "Events as they come; the header Last-Event-ID resumes a stream that broke",
                Gives::Events,
                || get(following::events),
            )
        },
        route(
            (Post, "/v1/dashboard-links"),
            READ,
            "Make a link that opens the dashboard once, with the rights of this token",
            Gives::One(201, "DashboardLink"),
            || post(dashboard::link),
        ),
        Route {
            takes: Some("NewJoinToken"),
            ..route(
                (Post, "/v1/join-tokens"),
                ADMIN,
                "Make a token with which one agent can join",
                Gives::One(201, "JoinToken"),
                || post(asking::invite),
            )
        },
        route((Get, "/v1/tokens"), ADMIN, "Every operator's token", Gives::List("Token"), || get(looking::tokens)),
        Route {
            takes: Some("NewToken"),
            ..route(
                (Post, "/v1/tokens"),
                ADMIN,
                "Make a token for an operator",
                Gives::One(201, "OperatorToken"),
                || post(asking::create_token),
            )
        },
        route((Delete, "/v1/tokens/{id}"), ADMIN, "Revoke a token", Gives::Nothing, || delete(asking::revoke_token)),
    ]
}

/// All routes, each behind its guard.
pub(super) fn router(api: &Api) -> Router {
    let mut router = dashboard::router();
    for route in table() {
        let guarded = (route.behind)().route_layer(from_fn_with_state((api.clone(), route.role, route.is_long), guard));
        router = router.route(route.path, guarded);
    }
    let nothing_here = || async { Problem::not_found("there is nothing at this address (see /v1/openapi.json)") };
    let wrong_method = || async {
        let error = "this address does not take that method (see /v1/openapi.json)";
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, error)
    };
    router.fallback(nothing_here).method_not_allowed_fallback(wrong_method).with_state(api.clone())
}
