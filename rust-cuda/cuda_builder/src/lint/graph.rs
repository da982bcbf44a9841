//! Dominators of a control flow graph.

/// Returns the immediate dominator of each node, or `None` for unreachable nodes. Node 0 is the entry and its own
/// dominator. After Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), figure 3.
pub(super) fn dominators(successors: &[Vec<usize>]) -> Vec<Option<usize>> {
    let order = reverse_postorder(successors);
    let mut rank = vec![usize::MAX; successors.len()];
    for (index, &node) in order.iter().enumerate() {
        rank[node] = index;
    }
    let mut predecessors = vec![Vec::new(); successors.len()];
    for &node in &order {
        for &next in &successors[node] {
            predecessors[next].push(node);
        }
    }
    let mut dominator: Vec<Option<usize>> = vec![None; successors.len()];
    if successors.is_empty() {
        return dominator;
    }
    dominator[0] = Some(0);
    loop {
        let mut changed = false;
        for &node in order.iter().skip(1) {
            let known = predecessors[node].iter().copied().filter(|&p| dominator[p].is_some());
            let new = known.reduce(|a, b| common(&dominator, &rank, a, b));
            if new != dominator[node] {
                dominator[node] = new;
                changed = true;
            }
        }
        if !changed {
            return dominator;
        }
    }
}

/// True if every path to `node` passes `over`.
pub(super) fn dominates(dominator: &[Option<usize>], over: usize, mut node: usize) -> bool {
    loop {
        match dominator[node] {
            _ if node == over => return true,
            Some(up) if up != node => node = up,
            _ => return false,
        }
    }
}

fn common(dominator: &[Option<usize>], rank: &[usize], mut a: usize, mut b: usize) -> usize {
    let up = |node: usize| dominator[node].unwrap_or(0);
    while a != b {
        while rank[a] > rank[b] {
            a = up(a);
        }
        while rank[b] > rank[a] {
            b = up(b);
        }
    }
    a
}

/// Returns the reverse postorder. Iterative, because a fully unrolled kernel has thousands of blocks in a row.
fn reverse_postorder(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; successors.len()];
    let mut stack = Vec::new();
    if !successors.is_empty() {
        seen[0] = true;
        stack.push((0, 0));
    }
    while let Some((node, next)) = stack.pop() {
        match successors[node].get(next) {
            None => order.push(node),
            Some(&child) => {
                stack.push((node, next + 1));
                if !seen[child] {
                    seen[child] = true;
                    stack.push((child, 0));
                }
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diamond_in_a_loop() {
        //      0 -> 1 -> {2, 3} -> 4 -> {1, 5}; 6 is not reached
        let successors = [vec![1], vec![2, 3], vec![4], vec![4], vec![1, 5], vec![], vec![5]];
        let dominator = dominators(&successors);
        assert_eq!(dominator, [Some(0), Some(0), Some(1), Some(1), Some(1), Some(4), None]);
        assert!(dominates(&dominator, 1, 5) && dominates(&dominator, 4, 5) && dominates(&dominator, 3, 3));
        assert!(!dominates(&dominator, 2, 4) && !dominates(&dominator, 2, 3) && !dominates(&dominator, 5, 4));
        assert!(!dominates(&dominator, 0, 6));
    }

    #[test]
    fn nothing_and_a_long_chain() {
        assert!(dominators(&[]).is_empty());
        let chain: Vec<Vec<usize>> =
            (0..100_000).map(|i| if i + 1 < 100_000 { vec![i + 1] } else { vec![] }).collect();
        assert_eq!(dominators(&chain)[99_999], Some(99_998));
    }
}
