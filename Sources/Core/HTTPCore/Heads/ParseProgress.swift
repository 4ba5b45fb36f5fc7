/// What a head parser found in the bytes so far.
public enum ParseProgress: Sendable, Equatable {
    /// All bytes are valid but the head is not complete: call again with the same bytes and more.
    case needMore
    /// The head is the first `headBytes` bytes; the bytes after them are not part of it.
    case complete(headBytes: Int)
    /// Responses only: the first `headBytes` bytes are a head whose lines all end in a bare line
    /// feed. Nothing else in it has been checked: see ``BareLineHead``.
    case bareLines(headBytes: Int)
}
