/// Which changes of keys the engine has yet to carry out, as far as those have to know who ask it
/// on a connection of their own: what they ask may overtake what is queued. A value without locks.
///
/// Keys share places by their hashes: one that has no change may seem to have one.
struct PendingChanges {
    /// The last change of the keys of each place.
    private var last = [UInt64](repeating: 0, count: Self.places)
    /// How many there were.
    private(set) var count: UInt64 = 0
    /// The engine has carried out all up to this one, or they are remembered elsewhere.
    private var done: UInt64 = 0

    private static let places = 4096

    private static func place(of hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash) & (places - 1)
    }

    /// A key is to be changed.
    mutating func add(_ hash: UInt64) {
        count += 1
        last[Self.place(of: hash)] = count
    }

    /// Whether a change of the key may not have been carried out.
    func arePending(_ hash: UInt64) -> Bool { last[Self.place(of: hash)] > done }

    /// The engine has replied to the changes up to this one.
    mutating func end(through number: UInt64) { done = max(done, number) }
}
