import PinfoldConfiguration

// Sizes that follow from the memory that the process may have, unless they are given.
extension SnapshotReader {
    /// The part of the limit on the process's memory that each of them gets.
    private static let divisor = 8
    /// The least that is given.
    private static let least = LimitsConfiguration.leastBuffers

    /// A size that is `auto`: this much, or an eighth of the limit on the process's memory if that
    /// is less.
    func automaticBytes(most: Int) -> Int {
        guard let limit = validation.environment.memoryLimit else { return most }
        return min(most, max(Self.least, limit / Self.divisor))
    }

    /// Warns if what is given for memory alone exceeds what the process may have.
    func warnOfMemory(_ cache: Field?, _ limits: Field?, _ snapshot: ConfigurationSnapshot) {
        guard let limit = validation.environment.memoryLimit else { return }
        let stored = snapshot.cache.isEnabled ? snapshot.cache.memoryBytes : 0
        let sum = stored.addingReportingOverflow(snapshot.limits.bufferBytes)
        guard sum.overflow || sum.partialValue > limit,
            let field = cache?.key("memory") ?? limits?.key("bufferBytes")
        else { return }
        field.warn(
            "cache.memory and limits.bufferBytes, \(Quantity.text(bytes: stored)) and "
                + "\(Quantity.text(bytes: snapshot.limits.bufferBytes)), exceed the limit on the "
                + "memory of this process, \(Quantity.text(bytes: limit)) (cgroup)")
    }
}

extension Field {
    /// A size, or `nil` for `auto`.
    func bytesOrAutomatic(in range: ClosedRange<Int>) -> Int? {
        if case .scalar("auto", _) = node.content { return nil }
        return bytes(in: range)
    }
}
