//! The API, over HTTP, on each storage.

mod api {
    pub(crate) mod accounts;
    pub(crate) mod albums;
    pub(crate) mod comments;
    pub(crate) mod description;
    mod faults;
    pub(crate) mod likes;
    pub(crate) mod limits;
    pub(crate) mod me;
    pub(crate) mod pages;
    pub(crate) mod problems;
    pub(crate) mod sessions;
    pub(crate) mod signatures;
    pub(crate) mod signed;
    pub(crate) mod uploads;
    pub(crate) mod users;
}
mod kit;

use social::config::StoreSettings;
use tempfile::TempDir;

use crate::kit::ferretdb::FerretDb;

/// Makes a test of each behaviour. `$open` names a function that returns an empty storage, and a
/// second value that is kept until the test has ended.
macro_rules! every_behaviour {
    ($open:path) => {
        every_behaviour! { $open;
            users:
                a_user_is_added_and_found,
                a_name_is_added_once,
                of_ten_sign_ups_of_one_name_at_once_one_is_taken,
                a_field_that_is_not_allowed_is_named,
                a_list_has_pages;
            sessions:
                the_cookie_is_for_this_site_and_not_for_scripts,
                the_cookie_of_a_site_with_tls_needs_tls,
                a_wrong_password_and_a_wrong_name_look_alike,
                a_change_needs_the_token_of_the_session,
                pages_of_other_origins_change_nothing,
                who_has_logged_out_is_nobody,
                an_invented_cookie_is_nobody;
            accounts:
                another_password_ends_all_other_sessions,
                another_address_is_confirmed_by_a_mail_to_it,
                a_link_is_good_while_its_address_is_the_last_one_asked_for,
                an_address_gets_few_mails_to_confirm_it,
                an_address_gets_other_mails_once_it_is_confirmed,
                a_forgotten_password_is_reset_by_mail,
                a_password_is_reset_though_the_client_leaves,
                a_token_is_good_for_one_thing_and_not_for_ever,
                who_logs_out_everywhere_is_nobody_everywhere,
                a_log_out_ends_what_the_session_has_open,
                private_pages_are_kept_nowhere,
                a_deleted_account_leaves_nothing,
                mails_that_are_asked_for_are_limited_by_client;
            me:
                only_the_user_themself_sees_and_changes_everything,
                a_webhook_is_an_address_with_tls,
                a_key_is_shown_once_and_deleted,
                a_user_has_twenty_keys_at_most,
                the_bell_tells_what_others_did_until_it_was_seen,
                browsers_subscribe_with_the_key_of_the_server;
            albums:
                an_album_is_made_shown_and_deleted,
                only_its_owner_deletes_an_album,
                a_deleted_album_takes_its_pictures_with_it_at_once;
            uploads:
                one_picture_comes_in_three_sizes_and_as_it_was,
                two_pictures_get_one_response,
                eleven_pictures_are_too_many,
                all_of_them_or_none,
                a_picture_that_is_too_long_is_refused_by_its_length,
                a_body_that_is_too_long_is_refused_before_it_is_read,
                a_bomb_is_refused_by_its_head,
                a_jpeg_that_is_truncated_is_refused,
                a_user_has_so_much_room,
                what_a_picture_shows_is_said_by_its_owner,
                only_its_owner_fills_an_album,
                other_parts_and_other_bodies_are_refused,
                the_head_of_a_part_has_an_end,
                a_deleted_picture_is_gone;
            pages:
                texts_are_compressed_and_pictures_are_not,
                the_page_of_the_api_shows_code_as_code,
                a_token_stands_in_no_two_pages;
            likes:
                to_like_twice_is_to_like_once,
                likes_of_many_are_counted,
                a_like_that_comes_again_is_no_news_to_a_webhook,
                who_is_not_logged_in_likes_nothing;
            comments:
                comments_are_shown_the_oldest_first,
                who_comments_sees_it_whatever_was_said_before,
                the_author_and_the_owner_delete_a_comment,
                a_comment_has_a_text;
            signatures:
                a_signed_request_is_its_keys_user,
                a_request_that_was_tampered_with_is_refused,
                a_signature_is_good_for_half_a_minute,
                a_signature_is_good_once,
                an_unknown_or_deleted_key_signs_nothing,
                every_component_and_parameter_is_needed,
                a_signed_upload_is_taken_whole,
                a_signed_upload_is_of_one_picture,
                signed_uploads_have_few_places;
            limits:
                log_ins_are_limited_by_client_and_by_name,
                a_few_wrong_tries_do_not_shut_out_the_user,
                sign_ups_are_limited_by_client,
                changes_and_uploads_are_limited_by_user,
                requests_are_limited_by_client_but_not_the_health_check,
                a_flood_of_log_ins_from_everywhere_refuses_no_page;
            problems:
                what_cannot_be_read_is_a_problem,
                addresses_and_methods_that_are_not_there_are_problems,
                responses_say_what_browsers_may_do_with_them;
            description:
                the_description_names_every_route,
                the_description_is_complete,
                programs_learn_the_time,
                the_example_of_the_documentation_works;
        }
    };
    ($open:path; $($area:ident: $($behaviour:ident),+;)+) => {
        $(mod $area {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    let (storage, _kept) = $open().await;
                    crate::api::$area::$behaviour(storage).await;
                }
            )+
        })+
    };
}

mod on_sqlite {
    every_behaviour!(crate::empty_sqlite);
}

mod on_mongo {
    every_behaviour!(crate::empty_mongo);
}

#[expect(clippy::unused_async, reason = "the other one waits for its server")]
async fn empty_sqlite() -> (StoreSettings, TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("social.db");
    (StoreSettings::Sqlite(path), directory)
}

async fn empty_mongo() -> (StoreSettings, FerretDb) {
    let server = FerretDb::start().await;
    (StoreSettings::Mongo(server.url("social")), server)
}
