//! Conversion of the code of -e into a file that can be loaded.

use std::path::Path;

/// Returns the text of a file whose value is that of `code` within Plack's `builder`, before the
/// application of `wrapped`, as plackup has it. Modules of -M are used again, since their imports
/// belong to the file.
pub(super) fn file(code: &str, modules: &[String], wrapped: Option<&Path>) -> String {
    let modules: String = modules.iter().map(|module| imported(module)).collect();
    let wrapped = wrapped.map(|file| {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        format!(
            "Greenroom::Application::provide_anyevent({file});\nPlack::Util::load_psgi({file});\n",
            file = quoted(&file.to_string_lossy())
        )
    });
    let wrapped = wrapped.unwrap_or_default();
    format!(
        "use Plack::Builder;\nuse Plack::Util ();\n{modules}builder {{\n#line 1 \"-e\"\n{code}\n;\n\
            {wrapped}}};\n"
    )
}

/// Returns the `use` of `Module` or `Module=import,import`. The loading of -M has checked it
/// before.
fn imported(module: &str) -> String {
    match module.split_once('=') {
        Some((module, imports)) => format!("use {module} split(/,/, {});\n", quoted(imports)),
        None => format!("use {module};\n"),
    }
}

/// Returns a quoted string of Perl.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stands_alone_or_before_an_application() {
        let alone = file("sub { 1 } # one", &[], None);
        assert!(
            alone.ends_with("\"-e\"\nsub { 1 } # one\n;\n};\n"),
            "{alone}"
        );
        let modules = ["A::B".to_owned(), "C=d,e'".to_owned()];
        let around = file("enable 'X'", &modules, Some(Path::new(r"/a/it's\.psgi")));
        assert!(
            around.contains("use A::B;\nuse C split(/,/, 'd,e\\'');\n"),
            "{around}"
        );
        assert!(
            around.contains(r"load_psgi('/a/it\'s\\.psgi');"),
            "{around}"
        );
    }
}
