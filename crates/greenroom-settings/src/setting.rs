use std::fmt;

/// A struct of settings, which [`settings!`](crate::settings) defines.
pub trait HasSettings: Default + 'static {
    /// Returns all settings, in the order in which they are documented.
    fn settings() -> &'static [Setting<Self>];

    /// Returns the setting with this name.
    #[must_use]
    fn setting(name: &str) -> Option<&'static Setting<Self>> {
        let mut settings = Self::settings().iter();
        settings.find(|setting| setting.name == name)
    }

    /// Checks every setting against its range.
    ///
    /// # Errors
    ///
    /// The first that is not allowed.
    fn check(&self) -> Result<(), SettingError> {
        let mut settings = Self::settings().iter();
        settings.try_for_each(|setting| {
            (setting.check)(self).map_err(|fault| SettingError::new(setting.name, fault))
        })
    }
}

/// One setting of the struct `T`, known by its name: for flags, files and pages that have one of
/// each.
pub struct Setting<T: 'static> {
    #[doc(hidden)]
    pub name: &'static str,
    #[doc(hidden)]
    pub unit: Unit,
    #[doc(hidden)]
    pub lines: &'static [&'static str],
    #[doc(hidden)]
    pub computed: Option<&'static str>,
    #[doc(hidden)]
    pub read: fn(&mut T, &str) -> Result<(), String>,
    #[doc(hidden)]
    pub write: fn(&T) -> String,
    #[doc(hidden)]
    pub check: fn(&T) -> Result<(), String>,
    #[doc(hidden)]
    pub allowed: fn() -> String,
}

/// The unit of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A whole number, such as `100`.
    Number,
    /// Bytes, such as `512B`, `64KiB` (of 1,024) or `64kB` (of 1,000).
    Size,
    /// A time, such as `250ms`, `10s` or `1m 30s`.
    Time,
}

/// A value that is not allowed, or a text that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {fault}")]
pub struct SettingError {
    name: &'static str,
    fault: String,
}

impl SettingError {
    fn new(name: &'static str, fault: String) -> Self {
        Self { name, fault }
    }

    /// Returns the name of the setting.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns what is wrong, and what is allowed, without the name of the setting.
    #[must_use]
    pub fn fault(&self) -> &str {
        &self.fault
    }
}

impl<T: HasSettings> Setting<T> {
    /// Returns the name of the field, such as `head_bytes_max`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its unit.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the first sentence of its text.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.lines[0].trim().trim_end_matches('.')
    }

    /// Returns the rest of its text: lines, of which empty ones end a paragraph.
    pub fn details(&self) -> impl Iterator<Item = &'static str> {
        let rest = self.lines[1..].iter();
        rest.map(|line| line.trim())
            .skip_while(|line| line.is_empty())
    }

    /// Returns its default as text: a value, or in words how it is computed.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.computed {
            Some(words) => words.to_owned(),
            None => self.text_of(&T::default()),
        }
    }

    /// Returns `true` if the default depends on the machine.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        self.computed.is_some()
    }

    /// Returns the values that are allowed, as text.
    #[must_use]
    pub fn allowed(&self) -> String {
        (self.allowed)()
    }

    /// Returns its value as text, which [`set`](Self::set) reads.
    #[must_use]
    pub fn text_of(&self, all: &T) -> String {
        (self.write)(all)
    }

    /// Sets it to the value of a text.
    ///
    /// # Errors
    ///
    /// If the text is no value of its [unit](Self::unit), or one that is not
    /// [allowed](Self::allowed).
    pub fn set(&self, all: &mut T, text: &str) -> Result<(), SettingError> {
        (self.read)(all, text.trim()).map_err(|fault| SettingError::new(self.name, fault))
    }
}

impl<T> fmt::Debug for Setting<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Setting")
            .field("name", &self.name)
            .field("unit", &self.unit)
            .finish_non_exhaustive()
    }
}
