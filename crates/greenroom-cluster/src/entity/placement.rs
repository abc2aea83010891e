//! Rendezvous hashing: an entity belongs to the node that scores highest for it. When a node goes,
//! only its own entities move; when one comes, only those that move to it. Source: Thaler and
//! Ravishankar, "A Name-Based Mapping Scheme for Rendezvous" (1996).

use crate::node::NodeId;

/// Returns the node that the entity with this key belongs to, of those that host its kind; `None`
/// if there are none. The same in every process, whatever the order of the nodes.
pub(crate) fn best<'a>(
    key: u64,
    nodes: impl IntoIterator<Item = &'a NodeId>,
) -> Option<&'a NodeId> {
    nodes
        .into_iter()
        .max_by_key(|node| (score(key, node.as_str()), *node))
}

fn score(key: u64, node: &str) -> u64 {
    mix(key ^ mix(fnv(FNV_OFFSET, node.as_bytes())))
}

/// Hashes the kind and the id of an entity.
pub(crate) fn of_key(kind: &str, id: &str) -> u64 {
    // A byte that no UTF-8 has keeps `ab` `c` and `a` `bc` apart.
    let hash = fnv(FNV_OFFSET, kind.as_bytes());
    fnv(fnv(hash, &[0xff]), id.as_bytes())
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Hashes bytes by FNV-1a: unlike the hash of std, the same in every version of a program.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME)
    })
}

/// Mixes the bits, by the finalizer of `SplitMix64`: every bit of the input changes about half of
/// the output's.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn place<'a>(
        kind: &str,
        id: &str,
        nodes: impl IntoIterator<Item = &'a NodeId>,
    ) -> Option<&'a NodeId> {
        best(of_key(kind, id), nodes)
    }

    fn nodes(count: usize) -> Vec<NodeId> {
        let nodes = ["web-1", "web-2", "web-3", "images-1", "images-2"];
        let nodes = nodes.into_iter().take(count);
        nodes
            .map(|node| NodeId::read(node).expect("it is a name"))
            .collect()
    }

    fn place_all(nodes: &[NodeId]) -> Vec<NodeId> {
        (0..10_000)
            .map(|id| place("album", &id.to_string(), nodes))
            .map(|node| node.expect("there are nodes").clone())
            .collect()
    }

    #[test]
    fn nobody_hosts_what_no_node_hosts() {
        assert_eq!(place("album", "1", []), None);
        let alone = nodes(1);
        assert_eq!(place("album", "1", &alone), Some(&alone[0]));
    }

    #[test]
    fn entities_are_spread_evenly() {
        let mut counts = HashMap::new();
        for node in place_all(&nodes(5)) {
            *counts.entry(node).or_insert(0) += 1;
        }
        // A fifth each, give or take what chance does: the deviation of a share is 40.
        let is_even = |count: &i32| (1_800..2_200).contains(count);
        assert_eq!(counts.len(), 5);
        assert!(counts.values().all(is_even), "{counts:?}");
    }

    #[test]
    fn a_new_node_takes_its_share_and_nothing_else_moves() {
        let (before, after) = (place_all(&nodes(4)), place_all(&nodes(5)));
        let moved: Vec<_> = (0..before.len())
            .filter(|id| before[*id] != after[*id])
            .collect();
        assert!(moved.iter().all(|id| after[*id].as_str() == "images-2"));
        assert!((1_800..2_200).contains(&moved.len()), "{}", moved.len());
    }

    #[test]
    fn the_order_of_the_nodes_does_not_matter() {
        let mut reversed = nodes(5);
        reversed.reverse();
        assert_eq!(place_all(&nodes(5)), place_all(&reversed));
    }

    #[test]
    fn programs_of_all_versions_agree() {
        let nodes = nodes(5);
        let placed = |id| place("album", id, &nodes).map(NodeId::as_str);
        let places = ["1", "2", "größe"].map(placed);
        let expected = ["web-1", "images-1", "web-1"].map(Some);
        assert_eq!(
            places, expected,
            "programs of other versions place otherwise"
        );
    }
}
