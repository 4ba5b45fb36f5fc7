import CachePolicy
import Testing

@testable import SharedCache

/// What several tests need.
enum Sample {
    static func secret(_ byte: UInt8) -> SharedSecret? {
        SharedSecret([UInt8](repeating: byte, count: 32))
    }

    static func keyring(_ bytes: UInt8...) throws -> SharedKeyring {
        let secrets = try bytes.map { try #require(secret($0)) }
        return try #require(SharedKeyring(secrets))
    }

    static let name = Array("p:1:{0123}".utf8)
    static let key = Array("https://example.com/a?b".utf8)
    static let head = Array("HTTP/1.1 200 OK\r\nDate: x\r\n".utf8)
    static let trust: UInt64 = 0xFEDC_BA98_7654_3210

    static func token(_ number: UInt64) -> SharedToken { SharedToken(random: (number, ~number)) }

    static func position(_ milliseconds: UInt64, epoch: UInt64 = 1) -> PurgePosition {
        PurgePosition(epoch: epoch, milliseconds: milliseconds, sequence: 0)
    }

    static let times = StoredTimes(requestTime: 1000, responseTime: 1001, initialAge: 5)

    static func draft(staleSince: Int64? = nil, vary: VaryKey = .none) -> SharedValueDraft {
        SharedValueDraft(
            key: key, vary: vary, head: head, times: times, trust: trust, instance: token(1),
            born: position(7), staleSince: staleSince)
    }

    static func variant(_ vary: VaryKey = .none) throws -> [UInt8] {
        try #require(SharedName.variant(vary, trust: trust))
    }

    /// A value, read from its bytes.
    static func value(
        _ bytes: [UInt8], of key: [UInt8] = key, variant: [UInt8]? = nil,
        under name: [UInt8] = name, by keyring: SharedKeyring
    ) throws -> SharedValue {
        let variant = try variant ?? Self.variant()
        return try bytes.withUnsafeBytes { bytes in
            try key.withUnsafeBytes { key in
                try SharedValue(bytes, under: name, of: key, variant: variant, by: keyring)
            }
        }
    }

    /// A value with its body, verified as it is when it is used.
    static func use(_ bytes: [UInt8], by keyring: SharedKeyring) throws -> [UInt8] {
        let value = try value(bytes, by: keyring)
        return try bytes.withUnsafeBytes { [UInt8](try value.inlineBody($0)) }
    }

    /// Every record that nothing follows, as it is written, and whether bytes are read as it.
    struct Alone: Sendable {
        let name: String
        let bytes: [UInt8]
        let read: @Sendable ([UInt8], [UInt8], SharedKeyring) throws -> Bool
    }

    static func alone(by keyring: SharedKeyring) throws -> [Alone] {
        let index = SharedIndex(instance: token(3))
        let lease = SharedLease(token(4))
        let note = NotStoredNote(reason: 9)
        let purge = try #require(
            PurgeEntry(.prefix(key), isSoft: true, seconds: 12, by: Array("gw-2".utf8)))
        return [
            Alone(
                name: "index", bytes: try #require(index.record(under: name, by: keyring)),
                read: { bytes, name, keyring in
                    try bytes.withUnsafeBytes {
                        try SharedIndex($0, under: name, by: keyring) == index
                    }
                }),
            Alone(
                name: "lease", bytes: try #require(lease.record(under: name, by: keyring)),
                read: { bytes, name, keyring in
                    try bytes.withUnsafeBytes {
                        try SharedLease($0, under: name, by: keyring) == lease
                    }
                }),
            Alone(
                name: "note", bytes: try #require(note.record(under: name, by: keyring)),
                read: { bytes, name, keyring in
                    try bytes.withUnsafeBytes {
                        try NotStoredNote($0, under: name, by: keyring) == note
                    }
                }),
            Alone(
                name: "purge", bytes: try #require(purge.record(under: name, by: keyring)),
                read: { bytes, name, keyring in
                    try bytes.withUnsafeBytes {
                        try PurgeEntry($0, under: name, by: keyring) == purge
                    }
                }),
        ]
    }
}
