/// A large body in chunks, each a record of its own: so that it is neither built nor read at once,
/// and each can be sent as soon as it has been verified.
package struct SharedChunks: Sendable, Hashable {
    /// The body's identity: chunks of different bodies have different names.
    package let body: SharedToken
    /// Bytes of every chunk but the last.
    package let chunkBytes: UInt32
    /// Bytes of the body.
    package let count: UInt64

    static let byteCount = 28
    /// What a chunk may have.
    package static let chunkSizes: ClosedRange<UInt32> = 4096...1 << 20
    /// Chunks at most.
    package static let maximumChunks: UInt64 = 1 << 16

    /// `nil` if the chunks would be too small, too large or too many, or there would be none.
    package init?(body: SharedToken, chunkBytes: UInt32, count: UInt64) {
        guard Self.chunkSizes.contains(chunkBytes), count > 0,
            count <= Self.maximumChunks * UInt64(chunkBytes)
        else { return nil }
        self.body = body
        self.chunkBytes = chunkBytes
        self.count = count
    }

    init?(_ content: UnsafeRawBufferPointer) {
        self.init(
            body: SharedToken(UnsafeRawBufferPointer(rebasing: content[..<16])),
            chunkBytes: SharedBytes.number(content, at: 16),
            count: SharedBytes.number(content, at: 20))
    }

    var bytes: [UInt8] { body.bytes + SharedBytes.number(chunkBytes) + SharedBytes.number(count) }

    /// How many there are.
    package var chunkCount: UInt32 {
        UInt32((count + UInt64(chunkBytes) - 1) / UInt64(chunkBytes))
    }

    /// The bytes of a chunk.
    package func count(of number: UInt32) -> Int {
        number + 1 < chunkCount
            ? Int(chunkBytes) : Int(count - UInt64(chunkBytes) * UInt64(chunkCount - 1))
    }

    /// The record of a chunk, which its bytes follow.
    package static func record(
        of bytes: UnsafeRawBufferPointer, _ number: UInt32, of body: SharedToken,
        under name: [UInt8], by keyring: SharedKeyring
    ) -> [UInt8]? {
        guard let digest = SharedDigest(of: bytes) else { return nil }
        return SharedRecord.write(
            .chunk,
            [
                (.body, SharedBytes.number(UInt64(bytes.count)) + digest.bytes),
                (.chunkIndex, SharedBytes.number(number)), (.token, body.bytes),
            ], under: name, by: keyring)
    }

    /// Reads and verifies a chunk.
    /// - Parameters:
    ///   - bytes: all that is stored under its name.
    ///   - name: its name.
    /// - Returns: its bytes.
    package func chunk(
        _ number: UInt32, _ bytes: UnsafeRawBufferPointer, under name: [UInt8],
        by keyring: SharedKeyring
    ) throws(SharedRecordError) -> UnsafeRawBufferPointer {
        let chunk = try Self.chunk(number, of: body, bytes, under: name, by: keyring)
        guard number < chunkCount, chunk.count == count(of: number) else { throw .wrongLength }
        return chunk
    }

    /// The same of a body that is still arriving: it is not known which chunk is the last.
    package static func chunk(
        _ number: UInt32, of body: SharedToken, _ bytes: UnsafeRawBufferPointer,
        under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) -> UnsafeRawBufferPointer {
        let record = try SharedRecord(.chunk, bytes, under: name, by: keyring)
        let content = try record.content(.body, bytes, count: 8 + SharedDigest.byteCount)
        let token = SharedToken(
            try record.content(.token, bytes, count: SharedToken.byteCount))
        let index: UInt32 = SharedBytes.number(
            try record.content(.chunkIndex, bytes, count: 4), at: 0)
        guard token == body, index == number else { throw .otherKey }
        let chunk = UnsafeRawBufferPointer(rebasing: bytes[record.count...])
        let count: UInt64 = SharedBytes.number(content, at: 0)
        guard UInt64(chunk.count) == count, count > 0, count <= UInt64(chunkSizes.upperBound)
        else { throw .wrongLength }
        let digest = SharedDigest(UnsafeRawBufferPointer(rebasing: content[8...]))
        guard SharedDigest(of: chunk) == digest else { throw .wrongBody }
        return chunk
    }
}
