//! The promises of every storage, tested on each of them.

mod kit;

mod store {
    pub(crate) mod comments;
    mod embedded;
    pub(crate) mod likes;
    pub(crate) mod log;
    pub(crate) mod outbox;
    pub(crate) mod people;
    pub(crate) mod pictures;
    pub(crate) mod sample;
}

use std::sync::Arc;

use kit::ferretdb::FerretDb;
use social::store::{Store, mongo, sqlite};
use tempfile::TempDir;

/// Makes a test of each behaviour. `$open` names a function that returns an empty storage, and a
/// second value that is kept until the test has ended.
macro_rules! every_behaviour {
    ($open:path) => {
        every_behaviour! { $open;
            people:
                users_are_found_by_identifier_and_by_name,
                names_are_unique,
                of_ten_users_of_one_name_at_once_one_is_added,
                users_are_listed_in_pages,
                a_change_touches_only_what_it_names,
                what_was_seen_of_the_bell_never_goes_back,
                sessions_end,
                old_sessions_are_pruned,
                keys_belong_to_their_user,
                a_nonce_is_used_once,
                of_ten_uses_of_a_nonce_at_once_one_is_the_first,
                old_nonces_are_pruned,
                a_browser_is_kept_once,
                users_are_found_by_their_address,
                a_new_generation_ends_sessions,
                a_browser_goes_with_its_session,
                a_ticket_is_used_once,
                old_tickets_are_pruned,
                a_deleted_user_is_hidden_until_nothing_is_left;
            pictures:
                albums_are_listed_the_newest_first,
                pictures_are_kept_as_they_are,
                pictures_are_added_together_or_not_at_all,
                pictures_are_listed_in_pages,
                a_picture_needs_its_album,
                an_album_is_deleted_with_all_its_pictures,
                an_album_is_deleted_once,
                a_picture_that_comes_while_its_album_is_deleted_does_not_stay,
                a_picture_is_deleted_alone,
                a_deleted_picture_takes_neither_likes_nor_comments,
                nothing_is_left_of_a_purged_picture,
                what_is_not_deleted_is_not_purged,
                nobody_reads_a_deleted_picture_in_the_timeline,
                what_a_picture_shows_can_be_said_later,
                what_a_user_has_stored_is_known;
            likes:
                to_like_twice_is_to_like_once,
                a_like_ends,
                effects_of_no_change_are_not_stored,
                a_hundred_users_like_at_once,
                one_user_likes_a_hundred_times_at_once,
                only_liked_pictures_are_liked,
                likes_are_found_by_user;
            comments:
                comments_are_listed_in_pages,
                a_comment_needs_its_picture,
                a_comment_is_deleted_once,
                comments_are_found_by_author,
                nobody_reads_a_deleted_comment_in_the_log;
            log:
                numbers_have_no_gaps_and_totals_are_sums,
                an_event_is_written_once,
                an_event_is_blanked_alone,
                events_are_read_in_pages,
                rings_are_found_by_who_has_rung,
                the_last_events_are_in_their_order,
                topics_without_events_have_no_head,
                a_refused_change_writes_no_events,
                a_hundred_changes_at_once_share_one_log,
                old_events_are_pruned,
                young_events_are_not_pruned;
            outbox:
                a_task_is_kept_as_it_was_added,
                a_key_is_used_once_for_ever,
                the_longest_due_is_claimed_first,
                what_is_not_due_is_not_claimed,
                a_claimed_task_comes_back_when_its_lease_is_over,
                ten_claims_at_once_share_the_tasks,
                who_was_too_late_settles_nothing,
                a_task_is_tried_again,
                a_task_is_given_up,
                kinds_do_not_mix,
                the_next_task_is_known,
                finished_tasks_are_pruned;
        }
    };
    ($open:path; $($area:ident: $($behaviour:ident),+;)+) => {
        $(mod $area {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    let (store, _kept) = $open().await;
                    crate::store::$area::$behaviour(store).await;
                }
            )+
        })+
    };
}

mod on_sqlite {
    every_behaviour!(crate::empty_sqlite);
}

async fn empty_sqlite() -> (Arc<dyn Store>, TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let store = sqlite::open(&directory.path().join("social.db")).await;
    (
        store.expect("an empty directory has room for a database"),
        directory,
    )
}

mod on_mongo {
    every_behaviour!(crate::empty_mongo);
}

async fn empty_mongo() -> (Arc<dyn Store>, FerretDb) {
    let server = FerretDb::start().await;
    let store = mongo::open(&server.patient_url("social")).await;
    (store.expect("the server responds"), server)
}
