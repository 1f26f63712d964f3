//! The description of every route in the OpenAPI format, made from the table of routes and the types of the documents.

use super::routes::{Gives, Route, table};
use crate::document::{
    Accepted, ApplicationDocument, ApplyRequest, Binding, Cancellation, ChangeRecord, CheckRequest, Component,
    ComponentDetail, DataDocument, DrainRequest, Drift, EventDocument, Gap, JoinToken, NewChange, NewJoinToken,
    NewToken, OperatorToken, Plan, PlanningDocument, Problems, ReconcileRequest, RemoveRequest, RollbackRequest,
    RunningChange, ScaleRequest, Status, Submitted, Token, Vm, Well, Why,
};
use serde_json::Value;
use utoipa::{
    OpenApi,
    openapi::{
        Content, Info, PathsBuilder, Ref, Required, ResponseBuilder,
        path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn, PathItem},
        request_body::RequestBodyBuilder,
        schema::{ArrayBuilder, ObjectBuilder, Type},
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

/// The types of the documents; those inside them come along.
#[derive(OpenApi)]
#[openapi(components(schemas(
    Accepted,
    ApplicationDocument,
    ApplyRequest,
    Binding,
    Cancellation,
    ChangeRecord,
    CheckRequest,
    Component,
    ComponentDetail,
    DataDocument,
    DrainRequest,
    Drift,
    EventDocument,
    Gap,
    JoinToken,
    NewChange,
    NewJoinToken,
    NewToken,
    OperatorToken,
    Plan,
    PlanningDocument,
    Problems,
    ReconcileRequest,
    RemoveRequest,
    RollbackRequest,
    RunningChange,
    ScaleRequest,
    Status,
    Submitted,
    Token,
    Vm,
    Well,
    Why
)))]
struct Documents;

/// What can go wrong, by status.
const PROBLEMS: [(u16, &str); 9] = [
    (400, "The request is malformed; every problem is listed"),
    (401, "No token, or one that is not known"),
    (403, "The token does not allow this"),
    (404, "There is no such thing"),
    (408, "The body took too long to arrive"),
    (409, "The manager refused; every reason is listed, and nothing has changed"),
    (413, "The body, or what was asked for, is too large"),
    (422, "The application's files are wrong; every problem is listed with its place"),
    (503, "The manager is halting, or there is too much to do"),
];

/// The description as JSON.
pub(super) fn description() -> Value {
    let mut description = Documents::openapi();
    description.info = Info::new("Holdfast operator API", env!("CARGO_PKG_VERSION"));
    let mut paths = PathsBuilder::new();
    for route in table() {
        paths = paths.path(route.path, PathItem::new(route.method.clone(), operation(&route)));
    }
    description.paths = paths.build();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    if let Some(components) = description.components.as_mut() {
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
    serde_json::to_value(description).expect("a description is made of strings")
}

fn operation(route: &Route) -> Operation {
    let mut operation = OperationBuilder::new().summary(Some(route.says));
    for part in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        operation = operation.parameter(parameter(part, ParameterIn::Path).required(Required::True));
    }
    for (name, meaning) in route.query {
        let parameter = parameter(name, ParameterIn::Query).required(Required::False);
        operation = operation.parameter(parameter.description(Some(*meaning)));
    }
    if let Some(document) = route.takes {
        let content = Content::new(Some(Ref::from_schema_name(document)));
        let body = RequestBodyBuilder::new().content("application/json", content).required(Some(Required::True));
        operation = operation.request_body(Some(body.build()));
    }
    if let Some(role) = route.role {
        operation = operation.security(SecurityRequirement::new("token", [role.to_string()]));
    }
    let good: Vec<(u16, Option<(&str, Content)>)> = match route.gives {
        Gives::One(status, document) => vec![(status, Some(("application/json", refer(document))))],
        Gives::Either(answers) => {
            answers.iter().map(|(status, it)| (*status, Some(("application/json", refer(it))))).collect()
        }
        Gives::List(document) => {
            let list = ArrayBuilder::new().items(Ref::from_schema_name(document));
            vec![(200, Some(("application/json", Content::new(Some(list)))))]
        }
        Gives::Text => vec![(200, Some(("text/plain", plain(Type::String))))],
        Gives::Events => vec![(200, Some(("text/event-stream", refer("EventDocument"))))],
        Gives::Description => vec![(200, Some(("application/json", plain(Type::Object))))],
        Gives::Nothing => vec![(204, None)],
    };
    for (status, content) in good {
        let mut response = ResponseBuilder::new().description(route.says);
        if let Some((sort, content)) = content {
            response = response.content(sort, content);
        }
        operation = operation.response(status.to_string(), response.build());
    }
    for (status, meaning) in PROBLEMS {
        let response = ResponseBuilder::new().description(meaning).content("application/json", refer("Problems"));
        operation = operation.response(status.to_string(), response.build());
    }
    operation.build()
}

fn parameter(name: &str, place: ParameterIn) -> ParameterBuilder {
    ParameterBuilder::new().name(name).parameter_in(place).schema(Some(ObjectBuilder::new().schema_type(Type::String)))
}

fn refer(document: &str) -> Content {
    Content::new(Some(Ref::from_schema_name(document)))
}

fn plain(sort: Type) -> Content {
    Content::new(Some(ObjectBuilder::new().schema_type(sort)))
}
