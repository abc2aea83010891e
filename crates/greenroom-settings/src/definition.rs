/// Defines a struct of settings, its defaults and its [settings](crate::Setting), each in one
/// place: `name: type as Unit = default, allowed;`, and after a default that is computed, `=> "in
/// words"`.
///
/// With `set by Builder` behind the struct's name, `Builder` gets a setter for each; its method
/// `settings_mut` returns the struct to set them in.
///
/// ```
/// use std::time::Duration;
///
/// use greenroom_settings::{HasSettings, settings};
///
/// settings! {
///     /// The settings of a kettle.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Kettle set by KettleBuilder {
///         /// Time for which the water is kept warm.
///         ///
///         /// It is heated again when it is touched.
///         warm_time: Duration as Time = Duration::from_secs(60), Duration::ZERO..=Duration::MAX;
///
///         /// Cups of water.
///         cups: u16 as Number = 4, 1..=8;
///     }
/// }
///
/// #[derive(Default)]
/// pub struct KettleBuilder(Kettle);
///
/// impl KettleBuilder {
///     fn settings_mut(&mut self) -> &mut Kettle {
///         &mut self.0
///     }
/// }
///
/// let mut kettle = KettleBuilder::default().cups(2).0;
/// let warm_time = Kettle::setting("warm_time").expect("it is one");
/// warm_time.set(&mut kettle, "5s")?;
/// assert_eq!((kettle.cups, kettle.warm_time), (2, Duration::from_secs(5)));
/// let cups = Kettle::setting("cups").expect("it is one");
/// let error = cups.set(&mut kettle, "9").unwrap_err();
/// assert_eq!(error.to_string(), "cups: 9 is not allowed; allowed: 1 to 8");
/// # Ok::<(), greenroom_settings::SettingError>(())
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$of_struct:meta])*
        $vis:vis struct $Settings:ident { $($fields:tt)+ }
    ) => {
        $crate::settings! { @struct [$(#[$of_struct])*] $vis $Settings { $($fields)+ } }
    };
    (
        $(#[$of_struct:meta])*
        $vis:vis struct $Settings:ident set by $Builder:ident { $($fields:tt)+ }
    ) => {
        $crate::settings! { @struct [$(#[$of_struct])*] $vis $Settings { $($fields)+ } }
        $crate::settings! { @setters $vis $Builder { $($fields)+ } }
    };
    (
        @struct [$(#[$of_struct:meta])*] $vis:vis $Settings:ident {
            $(
                $(#[doc = $line:literal])+
                $name:ident: $type:ty as $unit:ident
                    = $default:expr $(=> $words:literal)?, $range:expr;
            )+
        }
    ) => {
        $(#[$of_struct])*
        $vis struct $Settings {
            $(
                $(#[doc = $line])+
                #[doc = ""]
                #[doc = concat!(
                    "Default: ", $crate::settings!(@default $default $(=> $words)?),
                    "; allowed: `", stringify!($range), "`."
                )]
                $vis $name: $type,
            )+
        }

        impl Default for $Settings {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl $crate::HasSettings for $Settings {
            fn settings() -> &'static [$crate::Setting<Self>] {
                use $crate::text;
                const SETTINGS: &[$crate::Setting<$Settings>] = &[$(
                    $crate::Setting {
                        name: stringify!($name),
                        unit: $crate::Unit::$unit,
                        lines: &[$($line),+],
                        computed: $crate::settings!(@computed $($words)?),
                        read: |all, text| {
                            all.$name = text::read::<text::$unit, $type>(text, &$range)?;
                            Ok(())
                        },
                        write: |all| text::write::<text::$unit, $type>(&all.$name),
                        check: |all| text::check::<text::$unit, $type>(&all.$name, &$range),
                        allowed: || text::allowed::<text::$unit, $type>(&$range),
                    },
                )+];
                SETTINGS
            }
        }

        /// Writes the settings that differ from the defaults.
        impl $crate::serde::Serialize for $Settings {
            fn serialize<S: $crate::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                $crate::table::serialize(self, serializer)
            }
        }

        /// Reads texts and numbers; what is not there has its default.
        impl<'de> $crate::serde::Deserialize<'de> for $Settings {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                $crate::table::deserialize(deserializer)
            }
        }
    };
    (
        @setters $vis:vis $Builder:ident {
            $(
                #[doc = $first:literal]
                $(#[doc = $line:literal])*
                $name:ident: $type:ty as $unit:ident
                    = $default:expr $(=> $words:literal)?, $range:expr;
            )+
        }
    ) => {
        impl $Builder {
            $(
                #[doc = concat!("Sets `", stringify!($name), "`:", $first)]
                $(#[doc = $line])*
                #[doc = ""]
                #[doc = concat!(
                    "Default: ", $crate::settings!(@default $default $(=> $words)?),
                    "; allowed: `", stringify!($range), "`."
                )]
                #[must_use]
                $vis fn $name(mut self, $name: $type) -> Self {
                    self.settings_mut().$name = $name;
                    self
                }
            )+
        }
    };
    (@default $default:expr) => { concat!("`", stringify!($default), "`") };
    (@default $default:expr => $words:literal) => { $words };
    (@computed) => { None };
    (@computed $words:literal) => { Some($words) };
}
