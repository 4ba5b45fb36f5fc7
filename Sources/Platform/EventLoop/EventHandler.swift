/// Something that a loop notifies of its descriptor's readiness and its deadline.
///
/// A handler belongs to the loop's thread from `EventLoop.add` to `EventLoop.remove`; after that it
/// receives no event of the old registration. It is public only because a class must be `open` to
/// have subclasses in other modules.
open class EventHandler {
    /// The registration, `.none` outside a loop.
    public internal(set) final var token = Token.none
    /// When `deadlineReached` is due, in the loop's milliseconds; `.max` if never.
    public final var deadline = Int64.max
    /// The time of the wheel entry that will check `deadline`; `.max` if there is no entry.
    @usableFromInline final var wheelEntry = Int64.max
    /// See `EventLoop.setQuiet`.
    @usableFromInline final var isQuiet = false
    /// See `EventLoop.requeue`.
    final var isQueued = false

    public init() {}

    /// The descriptor's readiness changed.
    open func ready(_ readiness: Readiness) {}

    /// The deadline passed; it is unset before the call.
    open func deadlineReached() {}

    /// Called in the next turn, after a call to `EventLoop.requeue`.
    open func continueWork() {}
}

/// The handlers of a loop in a flat array, found by slot and checked by generation.
struct SlotTable {
    private struct Slot {
        var handler: EventHandler?
        var generation: UInt32
        var nextFree: Int32
    }

    private var slots = ContiguousArray<Slot>()
    private var firstFree: Int32 = -1
    private(set) var count = 0

    mutating func insert(_ handler: EventHandler) -> Token {
        count += 1
        if firstFree >= 0 {
            let slot = Int(firstFree)
            firstFree = slots[slot].nextFree
            slots[slot].handler = handler
            return Token(slot: slot, generation: slots[slot].generation)
        }
        slots.append(Slot(handler: handler, generation: 0, nextFree: -1))
        return Token(slot: slots.count - 1, generation: 0)
    }

    mutating func remove(_ token: Token) {
        let slot = token.slot
        guard slot < slots.count, slots[slot].generation == token.generation,
            slots[slot].handler != nil
        else { return }
        slots[slot].handler = nil
        slots[slot].generation &+= 1
        slots[slot].nextFree = firstFree
        firstFree = Int32(truncatingIfNeeded: slot)
        count -= 1
    }

    /// The handler, or `nil` if the token is from an earlier use of its slot.
    @inline(__always)
    func handler(for token: Token) -> EventHandler? {
        let slot = token.slot
        guard slot < slots.count, slots[slot].generation == token.generation else { return nil }
        return slots[slot].handler
    }

    /// All handlers, for shutting down.
    var all: [EventHandler] { slots.compactMap(\.handler) }
}
