//! Sample data: a few users and pictures, to try the application with.

mod paint;

use std::io::Write;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;

use crate::App;
use crate::model::{Album, Author, Effects, Id, User};
use crate::service::{self, Upload};
use paint::Scene;

/// The password of all users of the sample.
const PASSWORD: &str = "greenroom!";

/// A user of the sample, and their only album.
struct Person {
    name: &'static str,
    display: &'static str,
    about: &'static str,
    album: &'static str,
}

const PEOPLE: [Person; 3] = [
    Person {
        name: "ada",
        display: "Ada",
        about: "Looks for patterns, and finds them in hills, too.",
        album: "Hills and water",
    },
    Person {
        name: "grace",
        display: "Grace",
        about: "Sails by night, and brings a torch.",
        album: "After sunset",
    },
    Person {
        name: "linus",
        display: "Linus",
        about: "Walks where there is snow. Talks little.",
        album: "Up north",
    },
];

/// The pictures: index of the owner, scene, and caption. The last stands on top.
const PICTURES: [(usize, Scene, &str); 12] = [
    (2, Scene::Snow { seed: 11 }, "First snow of the year."),
    (
        0,
        Scene::Waves { seed: 3 },
        "The lake was never quite still.",
    ),
    (1, Scene::Night { seed: 21 }, "Counted until I lost count."),
    (
        0,
        Scene::Hills { seed: 8 },
        "Morning, before anybody was up.",
    ),
    (2, Scene::Forest { seed: 5 }, ""),
    (
        1,
        Scene::Sunset { seed: 2 },
        "The evening did all the work here.",
    ),
    (
        0,
        Scene::Tiles { seed: 4 },
        "The floor of the old station. Which tile does not fit?",
    ),
    (
        2,
        Scene::Snow { seed: 29 },
        "The hut is behind the second ridge.",
    ),
    (1, Scene::Night { seed: 7 }, "Anchor down, lights out."),
    (
        0,
        Scene::Hills { seed: 31 },
        "Five ridges, and a sixth if you squint.",
    ),
    (2, Scene::Forest { seed: 17 }, "Nobody answered."),
    (1, Scene::Sunset { seed: 13 }, "Same place, a year later."),
];

/// The comments: index of the picture, index of the author, and text.
const COMMENTS: [(usize, usize, &str); 7] = [
    (3, 1, "What did you have for breakfast up there?"),
    (3, 0, "Tea, and the rest of yesterday's bread."),
    (6, 2, "Third row. No, fourth."),
    (8, 0, "I can hear the crickets."),
    (9, 2, "I see seven."),
    (11, 0, "You stood a step further to the left."),
    (11, 2, "Good light."),
];

/// Fills the storage, if it has no user. No mails are sent.
///
/// # Errors
/// Those of the storage.
pub(crate) async fn fill(app: &App) -> anyhow::Result<()> {
    if !app.store.users(None, 1).await?.is_empty() {
        return Ok(());
    }
    let mut people = Vec::with_capacity(PEOPLE.len());
    for person in &PEOPLE {
        people.push(add_person(app, person).await?);
    }
    let mut pictures = Vec::with_capacity(PICTURES.len());
    for (owner, scene, caption) in PICTURES {
        let (author, album) = &people[owner];
        pictures.push(add_picture(app, author, album.id, scene, caption).await?);
    }
    add_likes(app, &people, &pictures).await?;
    for (picture, author, text) in COMMENTS {
        service::comment(app, &people[author].0, pictures[picture], text).await?;
    }
    Ok(())
}

async fn add_person(app: &App, person: &Person) -> anyhow::Result<(Author, Album)> {
    let user = User {
        id: Id::new(),
        name: person.name.to_owned(),
        display: person.display.to_owned(),
        email: format!("{}@localhost", person.name),
        wanted_email: None,
        about: person.about.to_owned(),
        password: app.passwords.hash(PASSWORD).await?,
        webhook: None,
        digest: false,
        bell_seen: 0,
        joined_at: Timestamp::now(),
        generation: 0,
    };
    app.store.insert_user(&user, Effects::default()).await?;
    let album = service::create_album(app, user.author(), person.album).await?;
    Ok((user.author(), album))
}

async fn add_picture(
    app: &App,
    owner: &Author,
    album: Id,
    scene: Scene,
    caption: &str,
) -> anyhow::Result<Id> {
    let mut file = app.files.spool()?;
    file.write_all(&scene.paint_jpeg()?)?;
    let upload = Upload {
        file: Arc::new(file.into_temp_path()),
        caption: caption.to_owned(),
        alt: String::new(),
    };
    let views = service::upload(app, owner, album, vec![upload]).await?;
    let view = views.first().context("an upload gives what was uploaded")?;
    Ok(view.picture.id)
}

async fn add_likes(app: &App, people: &[(Author, Album)], pictures: &[Id]) -> anyhow::Result<()> {
    for (number, picture) in pictures.iter().enumerate() {
        for (other, (author, _)) in people.iter().enumerate() {
            let likes = PICTURES[number].0 != other && (number * 5 + other) % 3 != 0;
            if likes {
                service::set_like(app, author, *picture, true).await?;
            }
        }
    }
    Ok(())
}
