import HTTPCore

/// A place in the stream of purges: the number of an entry, which the engine gives, and in which
/// stream it is. Each purge has a higher one than those before it.
///
/// A stream that is lost, or whose end goes back, as it may in a failover to a replica that had not
/// received the last entries, begins a new epoch: positions of different epochs have no order.
package struct PurgePosition: Sendable, Hashable {
    /// A number that is drawn when the stream begins.
    package let epoch: UInt64
    package let milliseconds: UInt64
    package let sequence: UInt64

    static let byteCount = 24

    package init(epoch: UInt64, milliseconds: UInt64, sequence: UInt64) {
        self.epoch = epoch
        self.milliseconds = milliseconds
        self.sequence = sequence
    }

    /// Before every entry of an epoch.
    package static func beginning(of epoch: UInt64) -> PurgePosition {
        PurgePosition(epoch: epoch, milliseconds: 0, sequence: 0)
    }

    /// Reads the number of an entry, `milliseconds-sequence`.
    package init?(epoch: UInt64, entry: [UInt8]) {
        let parts = entry.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count == 2, let milliseconds = Self.number(parts[0]),
            let sequence = Self.number(parts[1])
        else { return nil }
        self.init(epoch: epoch, milliseconds: milliseconds, sequence: sequence)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard (1...20).contains(digits.count), digits.allSatisfy({ ASCII.isDigit($0) }) else {
            return nil
        }
        return UInt64(String(decoding: digits, as: UTF8.self))
    }

    init(_ content: UnsafeRawBufferPointer) {
        epoch = SharedBytes.number(content, at: 0)
        milliseconds = SharedBytes.number(content, at: 8)
        sequence = SharedBytes.number(content, at: 16)
    }

    var bytes: [UInt8] {
        SharedBytes.number(epoch) + SharedBytes.number(milliseconds)
            + SharedBytes.number(sequence)
    }

    /// The number of the entry.
    package var entry: [UInt8] { Array("\(milliseconds)-\(sequence)".utf8) }

    /// One number for milliseconds and sequence: of one epoch, the order of the numbers is that of
    /// the positions. Of a position that does not fit, which no engine gives by itself, it is that
    /// of an earlier one.
    package var firstSerial: UInt64 {
        let isInRange = milliseconds < Self.limit && sequence < Self.sequences
        return min(milliseconds, Self.limit) << 20 | (isInRange ? sequence : 0)
    }

    /// The same, but of a position that does not fit, that of a later one.
    package var lastSerial: UInt64 {
        let isInRange = milliseconds < Self.limit && sequence < Self.sequences
        return isInRange ? firstSerial : (min(milliseconds, Self.limit) + 1) << 20
    }

    private static let limit: UInt64 = 1 << 43
    private static let sequences: UInt64 = 1 << 20

    /// Whether it precedes another position; `nil` if they have no order.
    package func isBefore(_ other: PurgePosition) -> Bool? {
        guard epoch == other.epoch else { return nil }
        return (milliseconds, sequence) < (other.milliseconds, other.sequence)
    }
}
