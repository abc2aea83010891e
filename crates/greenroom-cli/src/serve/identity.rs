//! The user and the group that the process serves as.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown, lchown};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use nix::errno::Errno;
use nix::unistd::{
    Gid, Group, Uid, User, getresgid, getresuid, initgroups, setgroups, setresgid, setresuid,
};

use crate::args::ProcessArgs;

const ROOT: Uid = Uid::from_raw(0);

/// The user and the group that --user and --group name.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The number, and the name if the system knows one: the process then gets that user's groups.
    user: Option<(Uid, Option<CString>)>,
    group: Gid,
}

impl Identity {
    /// Finds user and group in the system; `None` if the process is to keep its own.
    pub(super) fn find(args: &ProcessArgs) -> anyhow::Result<Option<Self>> {
        let user = args.user.as_deref().map(find_user).transpose()?;
        let group = args.group.as_deref().map(find_group).transpose()?;
        let own = user
            .as_ref()
            .and_then(|(_, user)| user.as_ref())
            .map(|user| user.gid);
        let Some(group) = group.or(own) else {
            ensure!(
                user.is_none(),
                "--user: the system does not know this user's group; name one with --group"
            );
            return Ok(None);
        };
        let user = match user {
            Some((uid, Some(user))) => Some((uid, Some(CString::new(user.name)?))),
            Some((uid, None)) => Some((uid, None)),
            None => None,
        };
        Ok(Some(Self { user, group }))
    }

    fn uid(&self) -> Option<u32> {
        self.user.as_ref().map(|(uid, _)| uid.as_raw())
    }

    /// Gives a file to user and group.
    pub(crate) fn own(&self, file: &File) -> io::Result<()> {
        fchown(file, self.uid(), Some(self.group.as_raw()))
    }

    /// Returns `true` for a file that is the user's and the group's.
    pub(super) fn has(&self, file: &Metadata) -> bool {
        self.uid().is_none_or(|uid| uid == file.uid()) && self.group.as_raw() == file.gid()
    }

    /// Gives a socket's file to user and group.
    pub(super) fn own_socket(&self, path: &Path) -> anyhow::Result<()> {
        lchown(path, self.uid(), Some(self.group.as_raw())).with_context(|| {
            let path = path.display();
            format!("unix:{path} cannot be given to the user and group to serve as")
        })
    }

    /// Changes the process to this user and group, for good.
    ///
    /// All threads change: these are the C library's functions, which see to it; the system calls
    /// change one thread.
    pub(super) fn assume(&self) -> anyhow::Result<()> {
        if self.is_ours()? {
            return Ok(());
        }
        match &self.user {
            Some((_, Some(name))) => initgroups(name, self.group),
            _ => setgroups(&[self.group]),
        }
        .map_err(|errno| refused("the supplementary groups", errno))?;
        setresgid(self.group, self.group, self.group)
            .map_err(|errno| refused("the group", errno))?;
        let Some((uid, _)) = self.user else {
            return Ok(());
        };
        setresuid(uid, uid, uid).map_err(|errno| refused("the user", errno))?;
        // Some systems let a process keep its capabilities, and so the way back.
        let is_for_good = uid == ROOT || setresuid(ROOT, ROOT, ROOT).is_err();
        ensure!(
            is_for_good,
            "--user: the process can become root again, and must not"
        );
        Ok(())
    }

    fn is_ours(&self) -> nix::Result<bool> {
        let (users, groups) = (getresuid()?, getresgid()?);
        let user = self.user.as_ref().map_or(users.effective, |(uid, _)| *uid);
        let is_root = users.effective == ROOT;
        Ok(!is_root
            && [users.real, users.effective, users.saved] == [user; 3]
            && [groups.real, groups.effective, groups.saved] == [self.group; 3])
    }
}

fn refused(what: &str, errno: Errno) -> anyhow::Error {
    let advice = match errno {
        Errno::EPERM => "; only root may, or who has CAP_SETUID and CAP_SETGID",
        _ => "",
    };
    anyhow::anyhow!(
        "--user and --group: {what} cannot be changed: {}{advice}",
        errno.desc()
    )
}

/// Finds a user by name or number; a number need not be known to the system.
fn find_user(text: &str) -> anyhow::Result<(Uid, Option<User>)> {
    let failed = || format!("--user {text}: the system's users cannot be read");
    if let Some(user) = User::from_name(text).with_context(failed)? {
        return Ok((user.uid, Some(user)));
    }
    let Ok(number) = text.parse() else {
        bail!("--user {text}: there is no such user");
    };
    let uid = Uid::from_raw(number);
    Ok((uid, User::from_uid(uid).with_context(failed)?))
}

fn find_group(text: &str) -> anyhow::Result<Gid> {
    let group = Group::from_name(text);
    match group.with_context(|| format!("--group {text}: the system's groups cannot be read"))? {
        Some(group) => Ok(group.gid),
        None => match text.parse() {
            Ok(number) => Ok(Gid::from_raw(number)),
            Err(_) => bail!("--group {text}: there is no such group"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(user: Option<&str>, group: Option<&str>) -> anyhow::Result<Option<Identity>> {
        Identity::find(&ProcessArgs {
            user: user.map(str::to_owned),
            group: group.map(str::to_owned),
            pid: None,
            allow_new_privileges: false,
            core_dumps: false,
        })
    }

    #[test]
    fn users_and_groups_are_found_by_name_and_number() {
        assert!(matches!(find(None, None), Ok(None)));
        let root = find(Some("root"), None)
            .ok()
            .flatten()
            .expect("there is one");
        assert_eq!((root.uid(), root.group.as_raw()), (Some(0), 0));
        let number = find(Some("0"), Some("54321"))
            .ok()
            .flatten()
            .expect("numbers do");
        assert_eq!((number.uid(), number.group.as_raw()), (Some(0), 54_321));
        let group = find(None, Some("54321"))
            .ok()
            .flatten()
            .expect("a group does");
        assert_eq!((group.uid(), group.group.as_raw()), (None, 54_321));
    }

    #[test]
    fn who_is_not_known_is_named() {
        for (user, group, said) in [
            (Some("no-such-user"), None, "no-such-user"),
            (Some("-1"), None, "-1"),
            (Some("54321"), None, "--group"),
            (None, Some("no-such-group"), "no-such-group"),
        ] {
            let error = find(user, group).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
