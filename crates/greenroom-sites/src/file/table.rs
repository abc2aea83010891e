//! The definition of a table: its keys, their types, defaults and texts, once for everything that
//! is made of them.

/// Defines a table of the file: a struct, with the reading of its keys, their documentation and
/// schema. A key is `name: Type;` or `name: Type = default;`. With `short name`, a value that is no
/// table is that of this key.
macro_rules! table {
    (
        $(#[doc = $of_table:literal])+
        pub(crate) struct $Name:ident $(, short $short:ident)? {
            $(
                $(#[doc = $line:literal])+
                $key:ident: $type:ty $(= $default:expr)?;
            )+
        }
    ) => {
        $(#[doc = $of_table])+
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $Name {
            $(
                $(#[doc = $line])+
                pub(crate) $key: $type,
            )+
        }

        impl $crate::file::Value for $Name {
            fn read(
                at: &$crate::file::At<'_, '_>,
                reading: &mut $crate::file::Reading<'_>,
            ) -> Option<Self> {
                let mut short = toml::de::DeTable::new();
                let name = $crate::file::table!(@short $($short)?);
                let table = reading.table(at, name, &mut short)?;
                reading.check_names(table, &[$(stringify!($key)),+]);
                $(
                    let $key = reading.field::<$type>(
                        (table, &at.span),
                        stringify!($key),
                        $crate::file::table!(@default $($default)?),
                    );
                )+
                Some(Self { $($key: $key?,)+ })
            }

            fn schema() -> serde_json::Value {
                let mut keys = serde_json::Map::new();
                let mut required: Vec<&str> = Vec::new();
                $(
                    let default: Option<$type> = $crate::file::table!(@default $($default)?);
                    let key = $crate::file::KeyDoc::of(stringify!($key), &[$($line),+], default);
                    if key.is_required {
                        required.push(stringify!($key));
                    }
                    keys.insert(stringify!($key).to_owned(), key.schema);
                )+
                let table = serde_json::json!({
                    "type": "object",
                    "additionalProperties": false,
                    "properties": keys,
                    "required": required,
                });
                match $crate::file::table!(@short $($short)?) {
                    Some(short) => {
                        let short: &str = short;
                        let value = table["properties"][short].clone();
                        serde_json::json!({ "anyOf": [value, table] })
                    }
                    None => table,
                }
            }

            fn form() -> String {
                let short: Option<&str> = $crate::file::table!(@short $($short)?);
                let forms = [$((
                    stringify!($key),
                    <$type as $crate::file::Value>::form as fn() -> String,
                )),+];
                let form = forms.iter().find(|(key, _)| Some(*key) == short);
                match form {
                    Some((_, form)) => format!("{}, or a table", form()),
                    None => "a table".to_owned(),
                }
            }

            fn keys() -> Vec<$crate::file::KeyDoc> {
                vec![$({
                    let default: Option<$type> = $crate::file::table!(@default $($default)?);
                    $crate::file::KeyDoc::of(stringify!($key), &[$($line),+], default)
                },)+]
            }
        }
    };
    (@short) => { None };
    (@short $short:ident) => { Some(stringify!($short)) };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
}

pub(crate) use table;
