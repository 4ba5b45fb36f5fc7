/// What a head parser made of the bytes so far.
package enum ParseProgress: Sendable, Equatable {
    /// All bytes are fine and the head goes on: call again with the same bytes and more.
    case needMore
    /// The head is the first `headBytes` bytes; what follows them is not part of it.
    case complete(headBytes: Int)
    /// Responses only: the first `headBytes` bytes are a head all of whose lines end in a bare line
    /// feed. Nothing else of it has been judged: see ``BareLineHead``.
    case bareLines(headBytes: Int)
}
