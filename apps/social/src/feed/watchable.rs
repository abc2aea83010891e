use crate::model::{Id, topic};

/// Checks that this viewer may watch a topic; the error is the reason why not.
pub(super) fn check(name: &str, viewer: Option<Id>) -> Result<(), &'static str> {
    if name == topic::TIMELINE {
        return Ok(());
    }
    let mut segments = name.splitn(4, '/');
    let (first, kind, id, rest) = (
        segments.next(),
        segments.next(),
        segments.next(),
        segments.next(),
    );
    let id = id.and_then(|id| id.parse::<Id>().ok());
    match (first, kind, id, rest) {
        (Some(""), Some("picture"), Some(_), Some("likes" | "comments")) => Ok(()),
        (Some(""), Some("user"), Some(user), Some("bell")) if Some(user) == viewer => Ok(()),
        (Some(""), Some("user"), Some(_), Some("bell")) => {
            Err("only the user themself may watch it")
        }
        _ => Err("topics are /timeline, /picture/ID/likes, /picture/ID/comments and /user/ID/bell"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_for_all_and_a_bell_for_its_user() {
        let (me, you) = (Id::new(), Id::new());
        for name in [
            topic::TIMELINE.to_owned(),
            topic::likes(you),
            topic::comments(you),
            topic::bell(me),
        ] {
            assert_eq!(check(&name, Some(me)), Ok(()), "{name}");
        }
        assert!(check(&topic::bell(you), Some(me)).is_err());
        assert!(check(&topic::bell(me), None).is_err());
    }

    #[test]
    fn what_only_looks_like_a_topic_is_none() {
        let id = Id::new();
        let names = [
            String::new(),
            "/".to_owned(),
            "timeline".to_owned(),
            "/timeline/".to_owned(),
            "/picture/*/likes".to_owned(),
            "/picture/**".to_owned(),
            format!("/picture/{id}"),
            format!("/picture/{id}/likes/"),
            format!("x/picture/{id}/likes"),
            format!("/picture/{}/likes", id.to_string().to_uppercase()),
            "/cache/invalidate".to_owned(),
        ];
        for name in names {
            assert!(check(&name, Some(id)).is_err(), "{name}");
        }
    }
}
