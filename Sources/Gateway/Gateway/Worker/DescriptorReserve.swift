import EventLoop

/// Descriptors that a listener keeps for when none is left.
///
/// The administrative address has some: whoever is to find out why nobody is let in has to be let
/// in. Another thread may be faster and take what is given up; then it is tried again later.
struct DescriptorReserve {
    private let size: Int
    private var held: [Int32] = []

    /// An empty reserve of at most so many.
    init(size: Int) { self.size = size }

    /// Whether some of it has been given up.
    var isInUse: Bool { held.count < size }

    /// Takes what is missing, as far as there are descriptors.
    mutating func fill() {
        while held.count < size, let descriptor = try? Descriptors.event() {
            held.append(descriptor)
        }
    }

    /// Gives one up; returns `false` if there is none.
    mutating func giveUp() -> Bool {
        guard let descriptor = held.popLast() else { return false }
        Descriptors.close(descriptor)
        return true
    }

    /// Gives all of them up.
    mutating func close() {
        while giveUp() {}
    }
}
