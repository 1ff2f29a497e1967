//! Takes messages, and answers them.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;

use frames::Incoming;
use lsp_server::{ErrorCode, Message, Notification, Request};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionParams, CodeActionProviderCapability, CompletionOptions,
    CompletionParams, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DocumentFormattingParams, DocumentSymbolParams, FoldingRangeParams, FoldingRangeProviderCapability,
    GotoDefinitionParams, HoverParams, HoverProviderCapability, InitializeParams, Location, OneOf,
    PublishDiagnosticsParams, ReferenceParams, RenameOptions, RenameParams, SemanticTokens,
    SemanticTokensFullOptions, SemanticTokensOptions, SemanticTokensParams, ServerCapabilities,
    SignatureHelpOptions, SignatureHelpParams, TextDocumentPositionParams, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextEdit, Uri,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::Client;
use crate::document::{Analysis, Document};
use crate::{completion, fixes, hover, navigation, outline, signature, tokens};

/// What a client may say when it starts the server (`initializationOptions`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    /// Check against this target instead of the files' own: `"sm_70"`.
    target: Option<String>,
    /// Accept forms that ptxas rejects and compilers emit, with a warning.
    lenient: bool,
    /// Accept functions that another file may define.
    relocatable: bool,
}

/// Why a request has no answer.
struct Refusal {
    code: i32,
    message: String,
}

impl Refusal {
    fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code: code as i32, message: message.into() }
    }
}

/// An answer, as JSON.
type Answer = Result<Box<RawValue>, Refusal>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Running,
    ShutDown,
}

/// A server and its client.
pub struct Server<C> {
    client: C,
    state: State,
    options: check::Options,
    documents: HashMap<String, Document>,
    /// The documents whose diagnostics the client does not have yet.
    stale: BTreeSet<String>,
}

impl<C: Client> Server<C> {
    /// A server of this client.
    pub fn new(client: C) -> Server<C> {
        let options = check::Options { assembly: check::Assembly::Whole, ..check::Options::default() };
        Server { client, state: State::New, options, documents: HashMap::new(), stale: BTreeSet::new() }
    }

    /// Answers messages until `exit` or the end. Returns whether `shutdown` came before.
    pub fn run(mut self, messages: &Receiver<Incoming<Message>>) -> io::Result<bool> {
        loop {
            // Diagnostics of a text that the next message changes would be in vain.
            let message = match messages.try_recv() {
                Ok(message) => message,
                Err(_) => {
                    self.publish()?;
                    match messages.recv() {
                        Ok(message) => message,
                        Err(_) => break,
                    }
                }
            };
            if !self.take(message)? {
                break;
            }
        }
        Ok(self.state == State::ShutDown)
    }

    /// Answers a message. Returns whether another may follow.
    pub fn take(&mut self, message: Incoming<Message>) -> io::Result<bool> {
        match message {
            Ok(Message::Request(request)) => self.request(request)?,
            Ok(Message::Notification(note)) if note.method == "exit" => return Ok(false),
            Ok(Message::Notification(note)) => {
                // There is nobody to tell: a notification has no answer.
                let _ = catch_unwind(AssertUnwindSafe(|| self.notification(note)));
            }
            // The server asks nothing.
            Ok(Message::Response(_)) => {}
            Err(problem) => {
                let error = json!({ "code": ErrorCode::ParseError as i32, "message": problem });
                self.send(&json!({ "jsonrpc": "2.0", "id": Value::Null, "error": error }))?;
            }
        }
        Ok(true)
    }

    /// The client.
    pub fn client(&mut self) -> &mut C {
        &mut self.client
    }

    fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.client.send(&serde_json::to_string(message)?)
    }

    fn request(&mut self, request: Request) -> io::Result<()> {
        let id = request.id.clone();
        let method = request.method.clone();
        let answer = catch_unwind(AssertUnwindSafe(|| self.answer(request))).unwrap_or_else(|_| {
            let message = format!("ptxvm itself failed at {method}, which is a defect of it");
            Err(Refusal::new(ErrorCode::InternalError, message))
        });
        #[derive(Serialize)]
        struct Response<'a> {
            jsonrpc: &'a str,
            id: lsp_server::RequestId,
            #[serde(skip_serializing_if = "Option::is_none")]
            result: Option<Box<RawValue>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<Value>,
        }
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(refusal) => (None, Some(json!({ "code": refusal.code, "message": refusal.message }))),
        };
        self.send(&Response { jsonrpc: "2.0", id, result, error })
    }

    fn answer(&mut self, request: Request) -> Answer {
        let Request { method, params, .. } = request;
        match (self.state, method.as_str()) {
            (State::New, "initialize") => return self.initialize(params),
            (State::New, _) => {
                return Err(Refusal::new(
                    ErrorCode::ServerNotInitialized,
                    "the first request is `initialize`",
                ));
            }
            (State::ShutDown, _) => {
                return Err(Refusal::new(ErrorCode::InvalidRequest, "the server is shut down"));
            }
            (State::Running, "initialize") => {
                return Err(Refusal::new(ErrorCode::InvalidRequest, "the server is initialized"));
            }
            (State::Running, "shutdown") => {
                self.state = State::ShutDown;
                return answer(&Value::Null);
            }
            (State::Running, _) => {}
        }
        let options = self.options;
        match method.as_str() {
            "textDocument/hover" => {
                let params: HoverParams = read(params)?;
                let (document, analysis, offset) = self.place(&params.text_document_position_params)?;
                answer(&hover::hover(document, analysis, offset, &options))
            }
            "textDocument/completion" => {
                let params: CompletionParams = read(params)?;
                let (document, analysis, offset) = self.place(&params.text_document_position)?;
                answer(&completion::completion(document, analysis, offset, &options))
            }
            "textDocument/signatureHelp" => {
                let params: SignatureHelpParams = read(params)?;
                let (document, _, offset) = self.place(&params.text_document_position_params)?;
                answer(&signature::signature(document.text(), offset))
            }
            "textDocument/definition" => {
                let params: GotoDefinitionParams = read(params)?;
                let place = params.text_document_position_params;
                let (document, analysis, offset) = self.place(&place)?;
                let found = navigation::definition(analysis, offset);
                answer(&found.map(|span| Location::new(place.text_document.uri, document.range(span))))
            }
            "textDocument/references" => {
                let params: ReferenceParams = read(params)?;
                let place = params.text_document_position;
                let (document, analysis, offset) = self.place(&place)?;
                let found = navigation::references(analysis, offset, params.context.include_declaration);
                let uri = place.text_document.uri;
                let location = |span| Location::new(uri.clone(), document.range(span));
                answer(&found.iter().map(|one| location(one.span)).collect::<Vec<_>>())
            }
            "textDocument/prepareRename" => {
                let params: TextDocumentPositionParams = read(params)?;
                let (document, analysis, offset) = self.place(&params)?;
                let span = navigation::renameable(document, analysis, offset).map_err(refused)?;
                answer(&document.range(span))
            }
            "textDocument/rename" => {
                let params: RenameParams = read(params)?;
                let place = params.text_document_position;
                let (document, analysis, offset) = self.place(&place)?;
                let edits =
                    navigation::rename(document, analysis, offset, &params.new_name).map_err(refused)?;
                answer(&fixes::workspace_edit(&place.text_document.uri, edits))
            }
            "textDocument/codeAction" => {
                let params: CodeActionParams = read(params)?;
                let uri = params.text_document.uri;
                let (document, analysis) = self.document(&uri)?;
                answer(&fixes::actions(document, analysis, &uri, document.span(params.range)))
            }
            "textDocument/documentSymbol" => {
                let params: DocumentSymbolParams = read(params)?;
                let (document, analysis) = self.document(&params.text_document.uri)?;
                answer(&outline::symbols(document, analysis))
            }
            "textDocument/foldingRange" => {
                let params: FoldingRangeParams = read(params)?;
                let (document, _) = self.document(&params.text_document.uri)?;
                answer(&outline::folds(document))
            }
            "textDocument/semanticTokens/full" => {
                let params: SemanticTokensParams = read(params)?;
                let (document, analysis) = self.document(&params.text_document.uri)?;
                let data = tokens::semantic_tokens(document, &analysis.names);
                answer(&SemanticTokens { result_id: None, data })
            }
            "textDocument/formatting" => {
                let params: DocumentFormattingParams = read(params)?;
                let (document, _) = self.document(&params.text_document.uri)?;
                let formatted = syntax::format(document.source())
                    .ok_or_else(|| refused("a file with syntax errors is not formatted".into()))?;
                let whole = document.range(diag::Span::new(0, document.text().len() as u32));
                let changed = (formatted != document.text()).then(|| TextEdit::new(whole, formatted));
                answer(&changed.into_iter().collect::<Vec<_>>())
            }
            _ => Err(Refusal::new(ErrorCode::MethodNotFound, format!("there is no method `{method}`"))),
        }
    }

    fn initialize(&mut self, params: Value) -> Answer {
        let params: InitializeParams = read(params)?;
        let settings: Settings = match params.initialization_options {
            Some(settings) if !settings.is_null() => read(settings)?,
            _ => Settings::default(),
        };
        if let Some(name) = settings.target {
            let target = isa::Target::parse(&name);
            self.options.target =
                Some(target.ok_or_else(|| {
                    Refusal::new(ErrorCode::InvalidParams, format!("`{name}` is no target"))
                })?);
        }
        self.options.lenient = settings.lenient;
        if settings.relocatable {
            self.options.assembly = check::Assembly::Relocatable;
        }
        self.state = State::Running;
        let server_info = json!({ "name": "ptxvm", "version": env!("CARGO_PKG_VERSION") });
        answer(&json!({ "capabilities": capabilities(), "serverInfo": server_info }))
    }

    fn notification(&mut self, note: Notification) {
        if self.state != State::Running {
            return;
        }
        match note.method.as_str() {
            "textDocument/didOpen" => {
                let Ok(params) = serde_json::from_value::<DidOpenTextDocumentParams>(note.params) else {
                    return;
                };
                let opened = params.text_document;
                let uri = opened.uri.as_str().to_owned();
                let name = uri.rsplit('/').next().unwrap_or_default().to_owned();
                self.documents.insert(uri.clone(), Document::new(&name, opened.text, opened.version));
                self.stale.insert(uri);
            }
            "textDocument/didChange" => {
                let Ok(params) = serde_json::from_value::<DidChangeTextDocumentParams>(note.params) else {
                    return;
                };
                let uri = params.text_document.uri.as_str();
                if let Some(document) = self.documents.get_mut(uri) {
                    document.change(params.content_changes, params.text_document.version);
                    self.stale.insert(uri.to_owned());
                }
            }
            "textDocument/didClose" => {
                let Ok(params) = serde_json::from_value::<DidCloseTextDocumentParams>(note.params) else {
                    return;
                };
                let uri = params.text_document.uri.as_str().to_owned();
                // What is not open has no diagnostics.
                if self.documents.remove(&uri).is_some() {
                    self.stale.insert(uri);
                }
            }
            _ => {}
        }
    }

    /// Sends the diagnostics of what has changed.
    pub fn publish(&mut self) -> io::Result<()> {
        for name in std::mem::take(&mut self.stale) {
            let Ok(uri) = name.parse::<Uri>() else { continue };
            let options = self.options;
            let (diagnostics, version) = match self.documents.get_mut(&name) {
                None => (Vec::new(), None),
                Some(document) => {
                    let analysed = catch_unwind(AssertUnwindSafe(|| {
                        document.analyse(&options);
                    }));
                    if analysed.is_err() {
                        continue;
                    }
                    let found = document.analysis().map_or(&[][..], |analysis| &analysis.diagnostics);
                    let shown = found.iter().map(|one| fixes::diagnostic(document, &uri, one)).collect();
                    (shown, Some(document.version))
                }
            };
            let params = PublishDiagnosticsParams { uri, diagnostics, version };
            let method = "textDocument/publishDiagnostics";
            self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))?;
        }
        Ok(())
    }

    /// An open document, checked.
    fn document(&mut self, uri: &Uri) -> Result<(&Document, &Analysis), Refusal> {
        let options = self.options;
        let name = uri.as_str();
        let missing = || Refusal::new(ErrorCode::InvalidParams, format!("`{name}` is not open"));
        let document = self.documents.get_mut(name).ok_or_else(missing)?;
        document.analyse(&options);
        let document = &*document;
        Ok((document, document.analysis().ok_or_else(missing)?))
    }

    /// A place in an open document.
    fn place(&mut self, place: &TextDocumentPositionParams) -> Result<(&Document, &Analysis, u32), Refusal> {
        let (document, analysis) = self.document(&place.text_document.uri)?;
        Ok((document, analysis, document.offset(place.position)))
    }
}

fn refused(why: String) -> Refusal {
    Refusal::new(ErrorCode::RequestFailed, why)
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|error| Refusal::new(ErrorCode::InvalidParams, error.to_string()))
}

fn answer(result: &impl Serialize) -> Answer {
    serde_json::value::to_raw_value(result)
        .map_err(|error| Refusal::new(ErrorCode::InternalError, error.to_string()))
}

fn capabilities() -> ServerCapabilities {
    let triggers = |characters: &[&str]| Some(characters.iter().map(|&c| c.to_owned()).collect());
    let fixes =
        CodeActionOptions { code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]), ..Default::default() };
    let rename =
        RenameOptions { prepare_provider: Some(true), work_done_progress_options: Default::default() };
    let tokens = SemanticTokensOptions {
        legend: tokens::legend(),
        full: Some(SemanticTokensFullOptions::Bool(true)),
        ..SemanticTokensOptions::default()
    };
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::INCREMENTAL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: triggers(&[".", "%", "@", "$"]),
            ..CompletionOptions::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: triggers(&[" ", ","]),
            ..SignatureHelpOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(rename)),
        document_symbol_provider: Some(OneOf::Left(true)),
        folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
        semantic_tokens_provider: Some(tokens.into()),
        document_formatting_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(fixes)),
        ..ServerCapabilities::default()
    }
}
