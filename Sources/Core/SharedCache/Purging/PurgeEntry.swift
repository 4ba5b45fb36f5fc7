import CachePolicy

/// A purge as it is written to the stream, from which every gateway reads it.
package struct PurgeEntry: Sendable, Hashable {
    package let pattern: PurgePattern
    /// Whether what it is about becomes stale rather than goes.
    package let isSoft: Bool
    /// When it was purged, in seconds on the engine's clock: a soft one makes stale from then on.
    package let seconds: Int64
    /// Who purged.
    package let gateway: [UInt8]

    /// Bytes of a gateway's name at most.
    package static let maximumGatewayBytes = 255

    /// `nil` if the pattern or the name is too long.
    package init?(_ pattern: PurgePattern, isSoft: Bool, seconds: Int64, by gateway: [UInt8]) {
        guard pattern.isWithinLimits, gateway.count <= Self.maximumGatewayBytes else {
            return nil
        }
        self.pattern = pattern
        self.isSoft = isSoft
        self.seconds = seconds
        self.gateway = gateway
    }

    /// The record to be written.
    /// - Parameter name: the stream's.
    package func record(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        SharedRecord.write(
            .purge,
            [
                (.gateway, gateway), (.pattern, pattern.bytes),
                (.purge, SharedBytes.number(seconds) + [isSoft ? 1 : 0]),
            ], under: name, by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(.purge, bytes, under: name, by: keyring)
        let place = try record.required(.pattern)
        let purge = try record.content(.purge, bytes, count: 9)
        let gateway = [UInt8](bytes[try record.required(.gateway)])
        let seconds: Int64 = SharedBytes.number(purge, at: 0)
        guard let pattern = PurgePattern(UnsafeRawBufferPointer(rebasing: bytes[place])),
            purge[8] <= 1, (0...StoredTimes.maximumTime).contains(seconds),
            let entry = PurgeEntry(
                pattern, isSoft: purge[8] == 1, seconds: seconds, by: gateway)
        else { throw .malformed }
        self = entry
    }

    /// What a gateway makes of an entry that it cannot read: it may have been any purge, also one
    /// that only a later version knows.
    ///
    /// What a gateway has written is as hard as any purge may have been. Where the code is wrong,
    /// or was not looked at because the format is another one, whoever writes to the engine wants
    /// hits to be lost, and could as well delete the entries: everything is confirmed by its origin
    /// before it is used again, but nothing is lost.
    package static func replacement(
        for error: SharedRecordError
    ) -> (pattern: PurgePattern, isSoft: Bool) {
        switch error {
        case .unsupportedField, .malformed: (.everything, false)
        case .notOurs, .unknownMajor, .unknownSecret, .wrongCode, .wrongBody, .wrongLength,
            .otherKind, .otherKey:
            (.everything, true)
        }
    }
}
