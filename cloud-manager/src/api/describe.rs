//! The OpenAPI description of every route, generated from the table of routes and the types of the documents.

use super::routes::{Gives, Route, table};
use crate::document::{
    Accepted, ApplicationDocument, ApplyRequest, AutoscaleDocument, Binding, Cancellation, ChangeRecord, ChangeStory,
    CheckRequest, Component, ComponentDetail, DashboardLink, DataDocument, DrainRequest, Drift, EventDocument, Gap,
    JoinToken, NewChange, NewJoinToken, NewToken, OperatorToken, Plan, PlanningDocument, Problems, ReconcileRequest,
    RemoveRequest, RollbackRequest, RunningChange, ScaleRequest, Status, Submitted, Token, Vm, Well, Why,
};
use serde_json::{Map, Value};
use std::sync::LazyLock;
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

/// The types of the documents, including nested ones.
#[derive(OpenApi)]
#[openapi(components(schemas(
    Accepted,
    ApplicationDocument,
    ApplyRequest,
    AutoscaleDocument,
    Binding,
    Cancellation,
    ChangeRecord,
    ChangeStory,
    CheckRequest,
    Component,
    ComponentDetail,
    DashboardLink,
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

/// The possible errors, by status.
const PROBLEMS: [(u16, &str); 9] = [
    (400, "The request is malformed; every problem is listed"),
    (401, "No token, or an unknown one"),
    (403, "The token does not allow this"),
    (404, "Not found"),
    (408, "The body took too long to arrive"),
    (409, "The manager refused; every reason is listed; nothing has changed"),
    (413, "The body or the request is too large"),
    (422, "The application's files have errors; every problem is listed with its place"),
    (503, "The manager is halting, or is overloaded"),
];

/// One example for each document, most of them recorded from a real manager.
static EXAMPLES: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).expect("the examples are a JSON object"));

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
        let content = refer(document);
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
            let mut list = Content::new(Some(ArrayBuilder::new().items(Ref::from_schema_name(document))));
            list.example = example(document).map(|it| Value::Array(vec![it]));
            vec![(200, Some(("application/json", list)))]
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
    let mut content = Content::new(Some(Ref::from_schema_name(document)));
    content.example = example(document);
    content
}

/// An example of a document, by the name of its type.
fn example(document: &str) -> Option<Value> {
    EXAMPLES.get(document).cloned()
}

fn plain(sort: Type) -> Content {
    Content::new(Some(ObjectBuilder::new().schema_type(sort)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::NewComponent;
    use serde::{Serialize, de::DeserializeOwned};

    /// Reads the example as the document that it is an example of, and writes it again.
    fn read<T: Serialize + DeserializeOwned>(name: &str) -> (Value, Value) {
        let example = example(name).unwrap_or_else(|| panic!("there is no example of {name}"));
        let read: T = serde_json::from_value(example.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        (example, serde_json::to_value(read).unwrap())
    }

    macro_rules! same {
        ($($document:ident)*) => {$(
            let (example, written) = read::<$document>(stringify!($document));
            if std::env::var_os("BLESS").is_some() {
                bless(stringify!($document), &written);
            } else {
                assert_eq!(example, written, "{}", stringify!($document));
            }
        )*};
    }

    /// Rewrites the example of a document.
    fn bless(document: &str, written: &Value) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/examples.json");
        let mut all: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        all.insert(document.to_owned(), written.clone());
        let lines: Vec<String> = all.iter().map(|(name, example)| format!("  \"{name}\": {example}")).collect();
        std::fs::write(path, format!("{{\n{}\n}}\n", lines.join(",\n"))).unwrap();
    }

    #[test]
    fn every_example_is_a_document_of_its_type() {
        // In a request, what has a default may be left out.
        read::<ApplyRequest>("ApplyRequest");
        read::<ScaleRequest>("ScaleRequest");
        read::<RollbackRequest>("RollbackRequest");
        read::<ReconcileRequest>("ReconcileRequest");
        read::<DrainRequest>("DrainRequest");
        read::<RemoveRequest>("RemoveRequest");
        read::<CheckRequest>("CheckRequest");
        read::<NewChange>("NewChange");
        read::<NewJoinToken>("NewJoinToken");
        read::<NewToken>("NewToken");
        same!(Accepted ApplicationDocument AutoscaleDocument Binding Cancellation ChangeRecord ChangeStory Component
            ComponentDetail DashboardLink DataDocument Drift EventDocument
            Gap JoinToken NewComponent OperatorToken Plan PlanningDocument Problems RunningChange Status Submitted Token
            Vm Well Why);
    }

    #[test]
    fn every_document_of_every_route_has_an_example() {
        for route in table() {
            let given: Vec<&str> = match route.gives {
                Gives::One(_, document) | Gives::List(document) => vec![document],
                Gives::Either(answers) => answers.iter().map(|(_, document)| *document).collect(),
                Gives::Text | Gives::Events | Gives::Description | Gives::Nothing => Vec::new(),
            };
            for document in given.into_iter().chain(route.takes) {
                assert!(example(document).is_some(), "{} {document}", route.path);
            }
        }
    }
}
