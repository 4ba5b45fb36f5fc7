import SharedCache

extension FuzzTarget {
    /// The first byte selects what is read; the fields of a record follow, or what is read as it
    /// is.
    ///
    /// Fields get the code that a gateway would write: without it, nothing is read of any bytes.
    /// What was read is read the same after it has been written.
    func checkSharedRecord(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first, let secret = SharedSecret.none,
            let keyring = SharedKeyring([secret])
        else { return false }
        let fields = Array(bytes.dropFirst())
        switch selector {
        case 0: return try checkValue(fields, keyring)
        case 1: return try checkChunk(fields, keyring)
        case 2:
            return try checkAlone(
                .index, fields, keyring,
                read: { bytes throws(SharedRecordError) in
                    try SharedIndex(bytes, under: recordName, by: keyring)
                }, write: { $0.record(under: recordName, by: keyring) })
        case 3:
            return try checkAlone(
                .lease, fields, keyring,
                read: { bytes throws(SharedRecordError) in
                    try SharedLease(bytes, under: recordName, by: keyring)
                }, write: { $0.record(under: recordName, by: keyring) })
        case 4:
            return try checkAlone(
                .note, fields, keyring,
                read: { bytes throws(SharedRecordError) in
                    try SharedRefusal(bytes, under: recordName, by: keyring)
                }, write: { $0.record(under: recordName, by: keyring) })
        case 5:
            return try checkAlone(
                .purge, fields, keyring,
                read: { bytes throws(SharedRecordError) in
                    try PurgeEntry(bytes, under: recordName, by: keyring)
                }, write: { $0.record(under: recordName, by: keyring) })
        case 6:
            guard let pattern = fields.withUnsafeBytes({ PurgePattern($0) }) else { return false }
            guard pattern.bytes == fields, pattern.isWithinLimits else {
                throw FuzzCheckError("\(fields) is read as \(pattern)")
            }
            return true
        default: return try checkRaw(fields, keyring)
        }
    }

    /// Bytes as they are: no gateway has written them.
    private func checkRaw(
        _ bytes: [UInt8], _ keyring: SharedKeyring
    ) throws(FuzzCheckError) -> Bool {
        let read = bytes.withUnsafeBytes { bytes in
            let count = try? SharedRecord.count(of: bytes)
            return (count ?? nil, try? SharedLease(bytes, under: recordName, by: keyring))
        }
        guard read.1 == nil, read.0 ?? 48 >= 48 else {
            throw FuzzCheckError("\(bytes) is read without a code")
        }
        return false
    }

    private func checkAlone<Value: Equatable>(
        _ kind: SharedRecord.Kind, _ fields: [UInt8], _ keyring: SharedKeyring,
        read: (UnsafeRawBufferPointer) throws(SharedRecordError) -> Value,
        write: (Value) -> [UInt8]?
    ) throws(FuzzCheckError) -> Bool {
        guard let record = SharedRecord.seal(kind, fields, under: recordName, by: keyring),
            let value = record.withUnsafeBytes({ try? read($0) })
        else { return false }
        guard let written = write(value), written.withUnsafeBytes({ try? read($0) }) == value
        else { throw FuzzCheckError("\(value) is not read again") }
        return true
    }

    private func checkValue(
        _ fields: [UInt8], _ keyring: SharedKeyring
    ) throws(FuzzCheckError) -> Bool {
        let variant = SharedName.variant(.none, trust: 0) ?? []
        guard let record = SharedRecord.seal(.value, fields, under: recordName, by: keyring)
        else { return false }
        let key = Array("http://a/".utf8)
        let value = record.withUnsafeBytes { bytes in
            key.withUnsafeBytes { key in
                try? SharedValue(
                    bytes, under: recordName, of: key, variant: variant, by: keyring)
            }
        }
        guard let value else { return false }
        guard value.head.upperBound <= record.count, value.vary.isEmpty, value.trust == 0,
            value.recordCount == record.count,
            value.head.count <= SharedValue.maximumTextBytes
        else { throw FuzzCheckError("\(value) is read") }
        if case .chunks(let chunks) = value.body {
            let last = chunks.chunkCount - 1
            let most = UInt64(chunks.chunkBytes) * UInt64(last)
            guard most + UInt64(chunks.count(of: last)) == chunks.count else {
                throw FuzzCheckError("\(chunks) do not add up")
            }
        }
        return true
    }

    /// The next byte is the length of the fields, and what follows them is the chunk.
    private func checkChunk(
        _ bytes: [UInt8], _ keyring: SharedKeyring
    ) throws(FuzzCheckError) -> Bool {
        let count = Int(bytes.first ?? 0)
        let fields = Array(bytes.dropFirst().prefix(count))
        let body = Array(bytes.dropFirst(1 + count))
        guard let record = SharedRecord.seal(.chunk, fields, under: recordName, by: keyring)
        else { return false }
        let token = SharedToken(random: (0, 0))
        let chunk = (record + body).withUnsafeBytes { bytes in
            (try? SharedChunks.chunk(0, of: token, bytes, under: recordName, by: keyring))
                .map { [UInt8]($0) }
        }
        guard let chunk else { return false }
        guard chunk == body, !body.isEmpty else { throw FuzzCheckError("\(chunk) is read") }
        return true
    }
}

private let recordName = Array("1:{a}".utf8)
