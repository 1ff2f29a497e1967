//! Functions under another name (PTX ISA, "Kernel and Function Directives: .alias").

use diag::Code;
use isa::{Target, Version};
use syntax::tree::{Alias, Name};

use crate::checker::Checker;
use crate::module::{FuncId, Linkage};
use crate::scope::Entity;
use crate::sink::Sink;

impl<'a> Checker<'a> {
    /// `.alias new, old;`: both must be declared functions, and `new` must have no body.
    pub(crate) fn alias(&mut self, node: &Alias<'a>) {
        self.need(node.span, ".alias", Some(Version::new(6, 3)), Some(Target::sm(30)));
        let mut ids = [None; 2];
        for (id, name) in ids.iter_mut().zip([node.alias, node.aliasee]) {
            match self.globals.get(name.text).map(|declared| declared.entity) {
                Some(Entity::Function(found)) => *id = Some(found),
                Some(_) => {
                    let message = format!("Cannot define alias to variable object '{}'", name.text);
                    self.sink.error(Code::IllegalAlias, name.span, message);
                    return;
                }
                None => {
                    let help = self.suggest(name.text, &[]);
                    self.sink.unknown_symbol(name.span, name.text, help);
                    return;
                }
            }
        }
        if let [Some(alias), Some(aliasee)] = ids {
            self.bind_alias(node, alias, aliasee);
        }
    }

    fn bind_alias(&mut self, node: &Alias<'a>, alias: FuncId, aliasee: FuncId) {
        let refuse = |sink: &mut Sink, name: Name, message: String| {
            sink.error(Code::IllegalAlias, name.span, message);
        };
        if alias == aliasee {
            return refuse(&mut self.sink, node.alias, "Cannot alias a function to itself".into());
        }
        if self.functions[aliasee.index()].is_entry || self.functions[alias.index()].is_entry {
            let message = format!("Cannot define alias to entry function '{}'", node.aliasee.text);
            return refuse(&mut self.sink, node.aliasee, message);
        }
        if let Some(first) = self.aliases.get(&alias).map(|first| &self.functions[first.index()].name) {
            let message =
                format!("'{}' is already aliased to '{first}' and cannot be redefined", node.alias.text);
            refuse(&mut self.sink, node.alias, message);
        } else if self.functions[alias.index()].body.is_some() {
            let message = format!("Illegal redefinition of function '{}' as alias", node.alias.text);
            return refuse(&mut self.sink, node.alias, message);
        }
        let [new, old] = [alias, aliasee].map(|id| &self.functions[id.index()]);
        if old.linkage == Linkage::Extern {
            let message = format!("Function '{}' with .extern scope cannot be aliased", node.aliasee.text);
            return refuse(&mut self.sink, node.aliasee, message);
        }
        let mut differences = crate::function::differences(&old.params, &new.params);
        differences.extend(crate::function::differences(&old.returns, &new.returns));
        if old.noreturn != new.noreturn {
            differences.push(".noreturn directive");
        }
        for difference in differences {
            let message = format!(
                "Mismatch in prototype of alias '{}' and aliasee '{}'. {difference} differ(s)",
                node.alias.text, node.aliasee.text
            );
            refuse(&mut self.sink, node.alias, message);
        }
        self.aliases.insert(alias, aliasee);
        // The alias runs the aliasee's code: the same body under another name.
        self.functions[alias.index()].body = self.functions[aliasee.index()].body.clone();
    }
}
