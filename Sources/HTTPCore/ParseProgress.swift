/// What a head parser made of the bytes so far.
package enum ParseProgress: Sendable, Equatable {
    /// All bytes are fine and the head goes on: call again with the same bytes and more.
    case needMore
    /// The head is the first `headBytes` bytes; what follows them is not part of it.
    case complete(headBytes: Int)
}
