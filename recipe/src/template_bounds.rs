//! Limits on the size of a template.
//!
//! Parsing a template recurses once for each part of an expression and for each `elif`; dropping a list recurses into
//! the lists in it, and each `set` may nest one more. A template that is too large would overflow the stack. So its
//! parts are counted first, without recursion.

use minijinja::machinery::{Token, WhitespaceConfig, tokenize};

/// Parts between `{{` and `}}`, or `{%` and `%}`: names, numbers, operators and keywords.
const PARTS_MAX: usize = 500;
/// The same of all `set` of a template together.
const SET_PARTS_MAX: usize = 2_000;
/// All `elif` of a template.
const BRANCHES_MAX: usize = 200;

/// What exceeds a limit in a template, and the offset at which it begins.
pub fn excess(template: &str) -> Option<(usize, String)> {
    let (mut began, mut parts, mut is_set) = (0, 0, false);
    let (mut set_parts, mut branches) = (0, 0);
    // What cannot be tokenized is reported by the parser.
    let tokens = tokenize(template, false, Default::default(), WhitespaceConfig::default()).map_while(Result::ok);
    for (token, span) in tokens {
        match token {
            Token::TemplateData(_) | Token::VariableEnd | Token::BlockEnd => continue,
            Token::VariableStart | Token::BlockStart => {
                (began, parts) = (usize::try_from(span.start_offset).unwrap_or(usize::MAX), 0);
                continue;
            }
            _ => parts += 1,
        }
        if parts == 1 {
            is_set = matches!(token, Token::Ident("set"));
            branches += usize::from(matches!(token, Token::Ident("elif")));
        }
        set_parts += usize::from(is_set);
        let says = if parts > PARTS_MAX {
            format!("an expression has more than {PARTS_MAX} parts (split it)")
        } else if set_parts > SET_PARTS_MAX {
            format!("all `set` together have more than {SET_PARTS_MAX} parts")
        } else if branches > BRANCHES_MAX {
            format!("there are more than {BRANCHES_MAX} `elif` branches (use a map)")
        } else {
            continue;
        };
        return Some((began, says));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::Environment;

    /// Each kind of nesting, this many times.
    fn deep(times: usize) -> [String; 7] {
        [
            format!("{{{{ 1{} }}}}", "+1".repeat(times)),
            format!("{{{{ {}a }}}}", "not ".repeat(times)),
            format!("{{{{ {}1 }}}}", "-".repeat(times)),
            format!("{{{{ a{} }}}}", ".a".repeat(times)),
            format!("{{% set a = a{} %}}", "|upper".repeat(times)),
            format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(times)),
            format!(
                "{{% set a = 1 %}}{}",
                format!("{{% set a = {}a{} %}}", "[".repeat(70), "]".repeat(70)).repeat(times)
            ),
        ]
    }

    #[test]
    fn what_would_need_too_much_of_the_stack_is_seen_before_it_does() {
        for template in deep(50_000) {
            assert!(excess(&template).is_some());
        }
        // A thousand small expressions are fine, and what is not a template is reported elsewhere.
        for fine in ["x {{ a + 1 }} {% if a %}{% elif b %}{% endif %}\n".repeat(100), "{{".into(), "{{ 'a }}".into()] {
            assert_eq!(excess(&fine), None);
        }
        assert_eq!(excess(&format!("abc {}", deep(501)[3])).map(|(began, _)| began), Some(4));
    }

    #[test]
    fn what_is_within_the_bounds_can_be_rendered() {
        for times in [13, 199, 249, 498] {
            for template in deep(times).iter().filter(|it| excess(it).is_none()) {
                let environment = Environment::new();
                let template = environment.template_from_str(template).unwrap();
                // Some of them calculate with undefined values, which must not crash either.
                let _ = template.render(());
            }
        }
    }
}
