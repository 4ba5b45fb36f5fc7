/// The links that a queue stores in its members. A member is in one queue at a time.
package protocol QueueMember: AnyObject {
    var nextInQueue: Self? { get set }
    var previousInQueue: Self? { get set }
}

/// Objects in the order in which they were added. Adding and removing take constant time at any
/// position: thousands may wait, and all of them may give up at the same moment.
package final class LinkedQueue<Member: QueueMember> {
    package private(set) var first: Member?
    package private(set) var last: Member?
    package private(set) var count = 0

    package var isEmpty: Bool { count == 0 }

    package init() {}

    deinit {
        // Neighbours refer to each other.
        while popFirst() != nil {}
    }

    package func append(_ member: Member) {
        assert(member.nextInQueue == nil && member.previousInQueue == nil)
        member.previousInQueue = last
        if let last { last.nextInQueue = member } else { first = member }
        last = member
        count += 1
    }

    /// Removes a member of this queue.
    package func remove(_ member: Member) {
        let (previous, next) = (member.previousInQueue, member.nextInQueue)
        if let previous { previous.nextInQueue = next } else { first = next }
        if let next { next.previousInQueue = previous } else { last = previous }
        member.previousInQueue = nil
        member.nextInQueue = nil
        count -= 1
    }

    package func popFirst() -> Member? {
        guard let first else { return nil }
        remove(first)
        return first
    }
}
