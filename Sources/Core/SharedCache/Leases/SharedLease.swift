/// Who fetches a response for the whole fleet. It ends by the engine's clock, whatever becomes of
/// its holder.
package struct SharedLease: Sendable, Hashable {
    /// Whoever has taken the lease knows it; nobody else's is ended by mistake.
    package let token: SharedToken

    package init(_ token: SharedToken) { self.token = token }

    /// The record to be stored.
    package func record(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        SharedRecord.write(.lease, [(.token, token.bytes)], under: name, by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(.lease, bytes, under: name, by: keyring)
        token = SharedToken(try record.content(.token, bytes, count: SharedToken.byteCount))
    }

    /// What the engine does in one step at the end of a lease, or to make it last longer: puts
    /// something else in its place, if it still is this one.
    ///
    /// - names: that of the lease.
    /// - arguments: its record; what takes its place, empty for nothing; milliseconds.
    /// - replies: 1, or 0 if it is not this one any longer.
    package static let replacing: StaticString = """
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        if ARGV[2] == '' then return redis.call('DEL', KEYS[1]) end
        redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
        return 1
        """
}

/// A note in the place of a lease that the responses to its key are not shared: nobody waits for
/// one (hit-for-miss). It expires in the engine.
package struct NotStoredNote: Sendable, Hashable {
    /// Why, for those who look: see below.
    package let reason: UInt8

    package init(reason: UInt8) { self.reason = reason }

    /// The response may not be stored.
    package static let notStored = NotStoredNote(reason: 1)
    /// It was stored, but not here: it is too large, for instance.
    package static let notShared = NotStoredNote(reason: 2)

    /// The record to be stored.
    package func record(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        SharedRecord.write(.note, [(.reason, [reason])], under: name, by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(.note, bytes, under: name, by: keyring)
        reason = try record.content(.reason, bytes, count: 1)[0]
    }
}

/// What is stored under the name of a key's lease.
package enum LeaseStanding: Sendable, Hashable {
    /// Somebody fetches the response.
    case taken(SharedLease)
    /// Nobody is to wait for one.
    case note(NotStoredNote)

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        do throws(SharedRecordError) {
            self = .taken(try SharedLease(bytes, under: name, by: keyring))
        } catch .otherKind(SharedRecord.Kind.note.rawValue) {
            self = .note(try NotStoredNote(bytes, under: name, by: keyring))
        }
    }
}
