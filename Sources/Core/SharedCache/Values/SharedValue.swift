import CachePolicy
import HTTPCore

/// A response as it is stored in the engine.
///
/// Its times are on the engine's clock (``EngineClock``), the only one that all gateways can read:
/// theirs may differ by an hour.
package struct SharedValue: Sendable, Equatable {
    /// Where the body is.
    package enum Body: Sendable, Hashable {
        /// After the record.
        case inline(count: UInt64, digest: SharedDigest)
        /// In chunks with names of their own.
        case chunks(SharedChunks)
    }

    /// A part of the bytes that were read.
    package typealias Place = Range<Int>

    package let times: StoredTimes
    /// The fingerprint of the trust and access rules under which it was obtained.
    package let trust: UInt64
    package let instance: SharedToken
    /// Up to this purge it is known not to be purged.
    package let born: PurgePosition
    /// Since which second it is stale; `nil` if it was not made so.
    package let staleSince: Int64?
    package let body: Body
    /// Where the stored head is in what was read, and the Vary key.
    package let head: Place
    package let vary: Place
    /// The bytes of the record: where an inline body begins.
    package let recordCount: Int

    /// The limits of a stored entry (`EntryRecord.maximumBytes`): key, Vary key and head together.
    package static let maximumTextBytes = 1 << 20

    /// Reads a value, but not its body, and verifies that it is of this key and variant. The body
    /// may not have arrived yet.
    /// - Parameters:
    ///   - bytes: the record, and what there is of the body.
    ///   - name: the name under which it was stored.
    ///   - key: the cache key that was asked for.
    ///   - variant: the digest of the variant that was asked for (`SharedName.variant`).
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], of key: UnsafeRawBufferPointer,
        variant: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord(.value, bytes, under: name, by: keyring)
        recordCount = record.count
        let keyPlace = try record.required(.key)
        guard UnsafeRawBufferPointer(rebasing: bytes[keyPlace]).hasSameBytes(as: key) else {
            throw .otherKey
        }
        vary = try record.required(.varyKey)
        head = try record.required(.head)
        guard !head.isEmpty, keyPlace.count + vary.count + head.count <= Self.maximumTextBytes
        else { throw .malformed }
        let times = try record.content(.times, bytes, count: 24)
        self.times = StoredTimes(
            requestTime: SharedBytes.number(times, at: 0),
            responseTime: SharedBytes.number(times, at: 8),
            initialAge: SharedBytes.number(times, at: 16))
        trust = SharedBytes.number(try record.content(.trust, bytes, count: 8), at: 0)
        instance = SharedToken(
            try record.content(.instance, bytes, count: SharedToken.byteCount))
        born = PurgePosition(
            try record.content(.born, bytes, count: PurgePosition.byteCount))
        staleSince =
            record.range(.staleSince) == nil
            ? nil : SharedBytes.number(try record.content(.staleSince, bytes, count: 8), at: 0)
        body = try Self.body(record, bytes)
        let varyBytes = UnsafeRawBufferPointer(rebasing: bytes[vary])
        guard varyBytes.isEmpty || VaryKey(bytes: [UInt8](varyBytes)) != nil,
            SharedName.isVariant(variant, varyBytes, trust: trust)
        else { throw .otherKey }
    }

    private static func body(
        _ record: SharedRecord, _ bytes: UnsafeRawBufferPointer
    ) throws(SharedRecordError) -> Body {
        switch (record.range(.body), record.range(.chunks)) {
        case (.some, nil):
            let content = try record.content(.body, bytes, count: 8 + SharedDigest.byteCount)
            return .inline(
                count: SharedBytes.number(content, at: 0),
                digest: SharedDigest(UnsafeRawBufferPointer(rebasing: content[8...])))
        case (nil, .some):
            let content = try record.content(.chunks, bytes, count: SharedChunks.byteCount)
            guard let chunks = SharedChunks(content) else { throw .malformed }
            return .chunks(chunks)
        case (nil, nil), (.some, .some): throw .malformed
        }
    }

    /// The body that follows the record, verified.
    /// - Parameter bytes: all that is stored under the name.
    package func inlineBody(
        _ bytes: UnsafeRawBufferPointer
    ) throws(SharedRecordError) -> UnsafeRawBufferPointer {
        guard case .inline(let count, let digest) = body else { throw .wrongLength }
        guard bytes.count >= recordCount, UInt64(bytes.count - recordCount) == count else {
            throw .wrongLength
        }
        let body = UnsafeRawBufferPointer(rebasing: bytes[recordCount...])
        guard SharedDigest(of: body) == digest else { throw .wrongBody }
        return body
    }
}

/// What a value is written from.
package struct SharedValueDraft: Sendable {
    package var key: [UInt8]
    package var vary: VaryKey
    /// The stored head (`StoredHead`).
    package var head: [UInt8]
    /// On the engine's clock.
    package var times: StoredTimes
    package var trust: UInt64
    package var instance: SharedToken
    package var born: PurgePosition
    package var staleSince: Int64?

    package init(
        key: [UInt8], vary: VaryKey, head: [UInt8], times: StoredTimes, trust: UInt64,
        instance: SharedToken, born: PurgePosition, staleSince: Int64? = nil
    ) {
        self.key = key
        self.vary = vary
        self.head = head
        self.times = times
        self.trust = trust
        self.instance = instance
        self.born = born
        self.staleSince = staleSince
    }

    /// The record of a value whose body follows it: body and record are stored as one.
    /// - Returns: `nil` if key, Vary key and head are too long, or the library is out of memory.
    package func record(
        body: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) -> [UInt8]? {
        guard let digest = SharedDigest(of: body) else { return nil }
        return record(
            .inline(count: UInt64(body.count), digest: digest), under: name, by: keyring)
    }

    /// The record of a value, with its body as it was stored before: what a 304 makes of it.
    package func record(
        _ body: SharedValue.Body, under name: [UInt8], by keyring: SharedKeyring
    ) -> [UInt8]? {
        guard !head.isEmpty,
            key.count + vary.bytes.count + head.count <= SharedValue.maximumTextBytes
        else { return nil }
        var fields: [(SharedField, [UInt8])] = [
            (.key, key), (.varyKey, vary.bytes),
            (
                .times,
                [times.requestTime, times.responseTime, times.initialAge].flatMap {
                    SharedBytes.number($0)
                }
            ),
            (.trust, SharedBytes.number(trust)), (.head, head), (.instance, instance.bytes),
            (.born, born.bytes),
        ]
        switch body {
        case .inline(let count, let digest):
            fields.append((.body, SharedBytes.number(count) + digest.bytes))
        case .chunks(let chunks): fields.append((.chunks, chunks.bytes))
        }
        if let staleSince { fields.append((.staleSince, SharedBytes.number(staleSince))) }
        return SharedRecord.write(.value, fields, under: name, by: keyring)
    }
}
