//! The table of routes. The router, the role that each route requires, and the OpenAPI description are all generated
//! from it, so they always agree.

use super::{
    Api, applications, autoscaling, cancelling, data, event_stream, guard::guard, metrics, problem::Problem, queries,
    requests, story,
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
    /// The role that a token needs; `None` for a route that is open to all.
    pub(super) role: Option<Role>,
    pub(super) says: &'static str,
    /// Query parameters, with their meaning.
    pub(super) query: &'static [(&'static str, &'static str)],
    /// The document in the request body.
    pub(super) takes: Option<&'static str>,
    pub(super) gives: Gives,
    /// Whether it plans, which may take minutes.
    is_long: bool,
    behind: fn() -> MethodRouter<Api>,
}

/// What a route answers on success.
#[derive(Clone, Copy)]
pub(super) enum Gives {
    /// One document.
    One(u16, &'static str),
    /// A list of documents.
    List(&'static str),
    /// One of two documents, depending on the request.
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
const DRY_RUN: &[(&str, &str)] = &[("dry-run", "true: change nothing, and return what would happen")];

/// A request about applications, which is planned first.
const fn verb(path: &'static str, says: &'static str, takes: &'static str, behind: fn() -> MethodRouter<Api>) -> Route {
    Route { query: DRY_RUN, takes: Some(takes), is_long: true, ..route((Post, path), OPERATE, says, PLANNED, behind) }
}

/// All routes.
pub(super) fn table() -> Vec<Route> {
    vec![
        route((Get, "/v1/health"), None, "Whether the manager answers", Gives::One(200, "Well"), || {
            get(queries::health)
        }),
        route((Get, "/v1/openapi.json"), None, "This description", Gives::Description, || get(queries::description)),
        route((Get, "/v1/status"), READ, "Everything at a glance", Gives::One(200, "Status"), || get(queries::status)),
        route((Get, "/metrics"), READ, "Numbers for Prometheus, in the OpenMetrics format", Gives::Text, || {
            get(metrics::metrics)
        }),
        route((Get, "/v1/vms"), READ, "Every VM", Gives::List("Vm"), || get(queries::vms)),
        route((Post, "/v1/vms/{name}/lost"), OPERATE, "Declare a VM lost", ACCEPTED, || post(requests::lost)),
        route((Get, "/v1/components"), READ, "Every component", Gives::List("Component"), || get(queries::components)),
        route(
            (Get, "/v1/components/{name}"),
            READ,
            "One component with its imports, exports and bindings",
            Gives::One(200, "ComponentDetail"),
            || get(queries::component),
        ),
        route(
            (Get, "/v1/components/{name}/definition"),
            // A recipe may hold what only those who could write it should read.
            OPERATE,
            "One component in the form in which it can be added again",
            Gives::One(200, "NewComponent"),
            || get(queries::definition),
        ),
        Route {
            query: &[
                ("bytes", "maximum number of bytes; default 65536"),
                ("previous", "true: of the last removed or replaced component of that name"),
            ],
            ..route(
                (Get, "/v1/components/{name}/logs"),
                READ,
                "The end of the output of a component's operations",
                Gives::Text,
                || get(queries::logs),
            )
        },
        route(
            (Get, "/v1/components/{name}/drift"),
            READ,
            "Differences between a component and what was requested, one per line",
            Gives::Text,
            || get(queries::drift),
        ),
        route(
            (Post, "/v1/components/{name}/retry"),
            OPERATE,
            "Retry the failed operation of a component",
            ACCEPTED,
            || post(requests::retry),
        ),
        route(
            (Post, "/v1/components/{name}/skip"),
            OPERATE,
            "Mark the failed operation of a component as done",
            ACCEPTED,
            || post(requests::skip),
        ),
        route(
            (Get, "/v1/why/{name}"),
            READ,
            "Why everything with a name is as it is: the chain of reasons, and what an operator can do",
            Gives::List("Why"),
            || get(queries::why),
        ),
        verb("/v1/apply", "Create or change an application as its files describe it", "ApplyRequest", || {
            post(applications::apply)
        }),
        verb("/v1/scale", "Change the number of components", "ScaleRequest", || post(applications::scale)),
        verb("/v1/rollback", "Return to an earlier version of an application", "RollbackRequest", || {
            post(applications::rollback)
        }),
        verb("/v1/reconcile", "Restore applications or components to what was applied", "ReconcileRequest", || {
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
                "Compare what runs with what was requested",
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
            // Its files hold recipes, which only those who could write them should read.
            OPERATE,
            "One application, with its files",
            Gives::One(200, "ApplicationDocument"),
            || get(applications::application),
        ),
        route((Get, "/v1/data"), READ, "Data that VMs keep for components", Gives::List("DataDocument"), || {
            get(data::list)
        }),
        Route {
            query: &[("vm", "the VM, where several keep data of one name")],
            ..route(
                (Delete, "/v1/data/{name}"),
                OPERATE,
                "Delete the data that is kept for a component; refused while the component uses it",
                Gives::Nothing,
                || delete(data::delete),
            )
        },
        route(
            (Get, "/v1/autoscale"),
            READ,
            "Every application that follows its load",
            Gives::List("AutoscaleDocument"),
            || get(autoscaling::list),
        ),
        route(
            (Post, "/v1/autoscale/{name}/pause"),
            OPERATE,
            "Stop following the load of an application until it is resumed",
            Gives::One(200, "AutoscaleDocument"),
            || post(autoscaling::pause),
        ),
        route(
            (Post, "/v1/autoscale/{name}/resume"),
            OPERATE,
            "Follow the load of an application again",
            Gives::One(200, "AutoscaleDocument"),
            || post(autoscaling::resume),
        ),
        route((Get, "/v1/bindings"), READ, "Every binding", Gives::List("Binding"), || get(queries::bindings)),
        route((Get, "/v1/changes"), READ, "Every change that is not done", Gives::List("RunningChange"), || {
            get(queries::changes)
        }),
        Route {
            query: DRY_RUN,
            takes: Some("NewChange"),
            is_long: true,
            ..route(
                (Post, "/v1/changes"),
                OPERATE,
                "Submit a change",
                Gives::Either(&[(202, "Accepted"), (200, "Plan")]),
                || post(requests::make),
            )
        },
        route(
            (Get, "/v1/changes/{id}"),
            READ,
            "One change, and what happened while it ran",
            Gives::One(200, "ChangeRecord"),
            || get(queries::change),
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
                "Cancel a change; with dry-run, return what that would do",
                Gives::Either(&[(202, "Cancellation"), (200, "Cancellation")]),
                || post(cancelling::cancel),
            )
        },
        route(
            (Post, "/v1/changes/{id}/promote"),
            OPERATE,
            "Continue a rollout that waits after its canaries, or whose next step was refused",
            ACCEPTED,
            || post(cancelling::promote),
        ),
        Route {
            query: &[("limit", "maximum number; default 50")],
            ..route((Get, "/v1/history"), READ, "Past changes, newest first", Gives::List("ChangeRecord"), || {
                get(queries::history)
            })
        },
        Route {
            query: &[("after", "begin after this event; default: with the next new event")],
            ..route(
                (Get, "/v1/events"),
                READ,
                "Events as they happen; the header Last-Event-ID resumes an interrupted stream",
                Gives::Events,
                || get(event_stream::events),
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
                "Create a token with which one agent can join",
                Gives::One(201, "JoinToken"),
                || post(requests::invite),
            )
        },
        route((Get, "/v1/tokens"), ADMIN, "Every operator's token", Gives::List("Token"), || get(queries::tokens)),
        Route {
            takes: Some("NewToken"),
            ..route(
                (Post, "/v1/tokens"),
                ADMIN,
                "Create a token for an operator",
                Gives::One(201, "OperatorToken"),
                || post(requests::create_token),
            )
        },
        route((Delete, "/v1/tokens/{id}"), ADMIN, "Revoke a token", Gives::Nothing, || delete(requests::revoke_token)),
    ]
}

/// All routes, each behind its guard.
pub(super) fn router(api: &Api) -> Router {
    let mut router = dashboard::router();
    for route in table() {
        let guarded = (route.behind)().route_layer(from_fn_with_state((api.clone(), route.role, route.is_long), guard));
        router = router.route(route.path, guarded);
    }
    let nothing_here = || async { Problem::not_found("no such address (see /v1/openapi.json)") };
    let wrong_method = || async {
        let error = "method not allowed for this address (see /v1/openapi.json)";
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, error)
    };
    router.fallback(nothing_here).method_not_allowed_fallback(wrong_method).with_state(api.clone())
}
