import CacheStore
import HTTPCore
import SharedCacheLevel

extension AdminResource {
    /// `GET /api/v1/cache/stats`
    static func stats(_ cache: CacheAdministration?) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/cache/stats", caller: .operator, name: "cacheStats",
            summary: "how much is stored, and what purges have done",
            responses: [
                Response(
                    status: 200, description: "The figures.", schema: CacheFigures.shape.schema)
            ],
            answer: { _ in
                guard let cache else { return .noCache }
                return .json(
                    CacheFigures(
                        store: cache.store.statistics(), purges: cache.purges.counts,
                        shared: cache.level?.figures()),
                    as: CacheFigures.shape)
            })
    }
}

/// How much is stored, and what purges have done since the start.
struct CacheFigures: Sendable {
    var store: StoreStatistics
    var purges: PurgeOrderCounts
    /// `nil` if the cache is not shared.
    var shared: SharedLevelStatistics?

    static let shape = ObjectShape<CacheFigures>(
        "How much is stored, and what purges have done since the start.",
        [
            .number("memoryEntries", "Stored responses in memory.") { $0.store.memoryEntries },
            .number("memoryBytes", "Bytes that they use.") { Int(clamping: $0.store.memoryBytes) },
            .number("memoryEvictions", "Responses that were removed from memory to make room.") {
                Int(clamping: $0.store.memoryEvictions)
            },
            .word(
                "diskState", ["off", "opening", "on", "handed-over", "failed"],
                "The state of the disk tier."
            ) { $0.store.diskState.word },
            .optionalText("diskFault", "Why it is not in use, although one is configured.") {
                $0.store.diskState.fault
            },
            .number("diskEntries", "Stored responses on disk.") { $0.store.diskEntries },
            .number("diskBytes", "Bytes that they use.") { Int(clamping: $0.store.diskBytes) },
            .number("diskFileBytes", "Bytes of the database and its write-ahead log.") {
                Int(clamping: $0.store.diskFileBytes)
            },
            .number("diskEvictions", "Responses that were removed from the disk to make room.") {
                Int(clamping: $0.store.diskEvictions.total)
            },
            .number("queuedBytes", "Bytes that are on their way to the disk.") {
                Int(clamping: $0.store.queueBytes)
            },
            .number("purgedMemoryEntries", "Responses that purges have removed from memory.") {
                Int(clamping: $0.store.purges.memoryEntries)
            },
            .number("purgedDiskEntries", "Responses that purges have removed from the disk.") {
                Int(clamping: $0.store.purges.diskEntries)
            },
            .object("purges", purges) { $0.purges },
            .optionalObject("shared", shared) { $0.shared },
        ])

    private static let shared = ObjectShape<SharedLevelStatistics>(
        "The level that is shared with other gateways; absent without cache.shared.",
        [
            .flag("on", "Whether it is in use.") { $0.isReady },
            .optionalText("reason", "Why it is not; absent while it is.") {
                $0.isReady ? nil : $0.reason?.rawValue
            },
            .number("hits", "Lookups that found a response.") { Int(clamping: $0.hits) },
            .number("misses", "Lookups that found none.") { Int(clamping: $0.misses) },
            .number("timeouts", "Lookups that did not end in time.") {
                Int(clamping: $0[.timeout])
            },
            .number("stores", "Responses that were stored there.") { Int(clamping: $0.stores) },
            .number("skipped", "Responses that were not, because too much was waiting.") {
                Int(clamping: $0.skipped)
            },
            .number("queuedBytes", "Bytes that are on their way there.") { $0.queueBytes },
            .number("members", "Gateways that share it, this one included.") { $0.members },
            .number("purgesReceived", "Purges of other gateways that were carried out here.") {
                Int(clamping: $0.purgesReceived)
            },
            .number("purgesSent", "Purges that other gateways were told of.") {
                Int(clamping: $0.purgesSent)
            },
        ])

    private static let purges = ObjectShape<PurgeOrderCounts>(
        "Purges since the start, by what they named.",
        [
            .number("urls", "Of URLs.") { $0.urls },
            .number("prefixes", "Of beginnings of URLs.") { $0.prefixes },
            .number("hosts", "Of hosts.") { $0.hosts },
            .number("tags", "Of tags.") { $0.tags },
            .number("everything", "Of everything.") { $0.everything },
            .number("soft", "Of these, those that made stale and did not remove.") { $0.soft },
            .number("dryRuns", "Those that were only counted.") { $0.dryRuns },
            .number("failed", "Those that could not be recorded, or counted.") { $0.failed },
            .number("busy", "Those that found too many waiting.") { $0.busy },
        ])
}

extension DiskState {
    /// The state as the API and metrics name it.
    var word: String {
        switch self {
        case .off(.disabled): "off"
        case .opening: "opening"
        case .ready: "on"
        case .handedOver: "handed-over"
        case .off: "failed"
        }
    }

    /// Why nothing is stored on the disk that is configured; `nil` if it is, or will soon be.
    var fault: String? {
        guard case .off(let reason) = self, reason != .disabled else { return nil }
        return reason.text
    }
}
