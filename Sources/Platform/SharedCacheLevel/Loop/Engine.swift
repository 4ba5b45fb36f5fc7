import CachePolicy
import RedisProtocol
import SharedCache

/// What is known of the engine while there is a connection, and how names and instances are made of
/// it. Used by the level's thread alone.
struct Engine {
    let names: SharedName
    let keyring: SharedKeyring
    /// Which run of the engine it is; empty if it does not say.
    private(set) var run: [UInt8] = []
    /// Which history of its data; empty if it does not say.
    private(set) var history: [UInt8] = []
    /// The number of the generation that everything belongs to; `nil` if it is not known.
    var generation: SharedToken?
    /// Own removals so far: replies to what was sent before are outdated.
    private(set) var removals: UInt64 = 0
    var clock = EngineClock()
    /// The numbers of keys that have one, as far as they are known.
    private var keys: [UInt64: KeyNumber] = [:]

    private struct KeyNumber {
        var number: SharedToken
        /// The own removal that drew it; 0 if another gateway's did.
        var removal: UInt64
        /// Which one it was of those that were learned (`SharedLevel.State.learned`); 0 if it is an
        /// own one.
        var learned: UInt64 = 0
    }

    /// Keys whose numbers are remembered at most. Without it a store may be in vain.
    private static let keyLimit = 16_384
    /// How long the generation and the streams live without any gateway.
    static let generationSeconds: Int64 = 7 * 86_400
    /// How long the number of a removed key lives: longer than a request.
    static let numberMilliseconds: Int64 = 600_000
    /// How long the chunks of a body live that nothing names yet.
    static let arrivingMilliseconds: Int64 = 600_000
    /// How long chunks stay for those who are reading them.
    static let readingMilliseconds: Int64 = 300_000
    /// The longest time that a response is kept, in seconds.
    static let longestSeconds: Int64 = 30 * 86_400

    init(_ options: SharedLevelOptions) {
        names = options.names
        keyring = options.keyring
    }

    // MARK: Names

    /// The field with a key's own number.
    static let numberField = Array("i".utf8)

    /// The hash of a key.
    func hash(_ digest: [UInt8]) -> [UInt8] { names.value(digest, variant: []) }

    /// The field that says which chunks the response of another field has.
    static func chunksField(of field: [UInt8]) -> [UInt8] { [UInt8(ascii: "c")] + field }

    /// Its value.
    static func chunksText(_ chunks: SharedChunks) -> [UInt8] {
        chunks.body.bytes + Array(String(chunks.chunkCount).utf8)
    }

    /// Reads it; `nil` if it is not one.
    static func chunks(_ text: [UInt8]) -> (token: SharedToken, count: UInt32)? {
        guard text.count > SharedToken.byteCount,
            let count = UInt32(
                String(decoding: text[SharedToken.byteCount...], as: UTF8.self)),
            count <= UInt32(SharedChunks.maximumChunks)
        else { return nil }
        return (SharedToken(words: text), count)
    }

    /// The name of the generation, of this run of the engine.
    var generationName: [UInt8] { names.generation(run: run) }

    /// The epoch of the streams: it begins with the generation.
    var epoch: UInt64 { generation?.low ?? 0 }

    // MARK: Generations

    /// The engine has said which run it is, and which history of its data.
    mutating func began(_ run: [UInt8], history: [UInt8]) {
        (self.run, self.history) = (run, history)
        generation = nil
    }

    /// The record of a generation.
    func generationRecord(_ number: SharedToken) -> [UInt8]? {
        SharedIndex(instance: number, history: history.isEmpty ? nil : history)
            .record(under: generationName, by: keyring)
    }

    /// Reads one.
    func readGeneration(_ record: [UInt8]) throws(SharedRecordError) -> SharedIndex {
        try SharedRecord.reading(record) { bytes throws(SharedRecordError) in
            try SharedIndex(bytes, under: generationName, by: keyring)
        }
    }

    /// The record of a number.
    func record(_ number: SharedToken, under name: [UInt8]) -> [UInt8]? {
        SharedIndex(instance: number).record(under: name, by: keyring)
    }

    /// Reads one.
    func number(
        _ record: [UInt8], under name: [UInt8]
    ) throws(SharedRecordError) -> SharedToken {
        try Self.number(record, under: name, by: keyring)
    }

    static func number(
        _ record: [UInt8], under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) -> SharedToken {
        try SharedRecord.reading(record) { bytes throws(SharedRecordError) in
            try SharedIndex(bytes, under: name, by: keyring).instance
        }
    }

    // MARK: Keys

    /// A key is removed: it gets a new number.
    mutating func remove(_ key: UInt64) -> SharedToken {
        let drawn = SharedToken.drawn()
        removals += 1
        if keys.count >= Self.keyLimit { keys = [:] }
        keys[key] = KeyNumber(number: drawn, removal: removals)
        return drawn
    }

    /// A lookup has read a key's number; `nil` if it has none.
    /// - Parameter removals: own removals before the lookup was sent.
    /// - Returns: the number if it is news that another gateway has drawn it: it counts as known
    ///   with ``learn(_:of:as:)``.
    mutating func read(
        _ number: SharedToken?, of key: UInt64, after removals: UInt64
    ) -> SharedToken? {
        if let known = keys[key], known.removal > removals || known.number == number { return nil }
        guard let number else {
            keys[key] = nil
            return nil
        }
        return number
    }

    /// The number is a key's from now on.
    /// - Parameter learned: how many were learned with this one.
    mutating func learn(_ number: SharedToken, of key: UInt64, as learned: UInt64) {
        if keys.count >= Self.keyLimit { keys = [:] }
        keys[key] = KeyNumber(number: number, removal: 0, learned: learned)
    }

    /// Whether a key's number was learned before so many were: what was queued by then belongs to
    /// it, or to the one before it.
    func wasKnown(_ key: UInt64, at learned: UInt64) -> Bool {
        keys[key].map { $0.learned <= learned } ?? true
    }

    /// A key's number, as far as it is known.
    func number(of key: UInt64) -> SharedToken? { keys[key]?.number }

    /// What a response names that is stored under a generation and a key's number.
    static func instance(_ generation: SharedToken, _ key: SharedToken?) -> SharedToken {
        guard let key else { return generation }
        return generation ^ key
    }
}

extension SharedToken {
    /// Of the first 16 bytes.
    fileprivate init(words bytes: [UInt8]) {
        let (low, high) = bytes.withUnsafeBytes { bytes in
            (
                UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        self.init(random: (low, high))
    }
}
