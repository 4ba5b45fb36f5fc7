import Activity
import EventLoop
import Foundation
import PinReporting
import PinfoldConfiguration
import TestSupport
import Testing

@testable import CacheStore
@testable import Gateway
@testable import PinfoldEngine
@testable import PinfoldMetrics
@testable import PinfoldTLS
@testable import SharedCacheLevel

@Suite("Metrics of the whole gateway")
struct ServiceFamiliesTests {
    /// Metrics by name and labels.
    private func values(_ service: ServiceMetrics) -> [String: Double] {
        var found: [String: Double] = [:]
        for family in service.families {
            for sample in family.samples {
                let labels = String(decoding: sample.labels.bytes, as: UTF8.self)
                let value: Double =
                    switch sample.value {
                    case .number(let number): Double(number)
                    case .signed(let number): Double(number)
                    case .millionths(let number): Double(number) / 1_000_000
                    }
                #expect(found.updateValue(value, forKey: "\(family.name){\(labels)}") == nil)
            }
        }
        return found
    }

    private func values(_ add: (inout ServiceMetrics) -> Void) -> [String: Double] {
        var service = ServiceMetrics()
        service.wallSeconds = 1000
        add(&service)
        return values(service)
    }

    private static func store(_ state: DiskState) -> StoreStatistics {
        var store = StoreStatistics()
        (store.memoryBytes, store.memoryEntries, store.memoryEvictions) = (1, 2, 3)
        store.memoryHeapBytes = 4
        store.diskState = state
        (store.diskBytes, store.diskEntries) = (5, 6)
        (store.diskEntriesLimit, store.queueLimitBytes) = (60, 110)
        (store.diskFileBytes, store.diskLogBytes, store.diskWrites) = (30, 10, 7)
        store.diskEvictions = DiskEvictions(bytes: 100, entries: 20, variants: 3)
        (store.diskRestarts, store.diskSkipped, store.damagedEntries) = (8, 9, 10)
        (store.queueBytes, store.queueDepth) = (11, 12)
        return store
    }

    @Test func `the shared cache has its own, and none where there is none`() {
        #expect(values { $0.addSharedCache(nil) }.isEmpty)
        var level = SharedLevelStatistics()
        (level.hits, level.misses, level.stores, level.skipped) = (1, 2, 3, 4)
        (level.connections, level.bytesRead, level.bytesWritten) = (5, 6, 7)
        (level.queueBytes, level.queueCommands, level.lostKeys) = (8, 9, 10)
        (level.purgesReceived, level.purgesSent) = (11, 12)
        (level.removalsReceived, level.removalsSent) = (13, 14)
        (level.madeStale, level.isFollowing) = (15, true)
        (level.knownNodes, level.usedNodes, level.moved, level.asked) = (24, 25, 26, 27)
        (level.isReady, level.breaker) = (true, .halfOpen)
        (level.leases, level.heldLeases, level.waitingLookups) = (18, 19, 20)
        (level.waits, level.waitsAnswered, level.waitsInVain) = (66, 21, 22)
        level.latencies = [1, 1, 1, 1, 1, 1, 1]
        level[.otherSecret] = 17
        let found = values { $0.addSharedCache(level) }
        let start = "pinfold_cache_shared_"
        let expected: [(name: String, value: Double)] = [
            ("up{}", 1), ("breaker_state{state=\"half_open\"}", 1),
            ("breaker_state{state=\"open\"}", 0), ("lookups{result=\"hit\"}", 1),
            ("lookups{result=\"miss\"}", 2), ("stores{}", 3), ("stores_skipped{}", 4),
            ("connections{}", 5), ("received_bytes{}", 6), ("sent_bytes{}", 7),
            ("queue_bytes{}", 8), ("queue_commands{}", 9), ("lost_keys{}", 10),
            ("purges{direction=\"received\"}", 11), ("purges{direction=\"sent\"}", 12),
            ("invalidations{direction=\"received\"}", 13),
            ("invalidations{direction=\"sent\"}", 14), ("made_stale{}", 15),
            ("nodes{state=\"known\"}", 24),
            ("nodes{state=\"used\"}", 25), ("redirects{kind=\"moved\"}", 26),
            ("redirects{kind=\"ask\"}", 27),
            ("leases{}", 18), ("held_leases{}", 19), ("waiting_lookups{}", 20),
            ("waits{result=\"answered\"}", 21), ("waits{result=\"timed_out\"}", 22),
            ("waits{result=\"none\"}", 23), ("following{}", 1),
            ("errors{reason=\"other_secret\"}", 17),
            ("errors{reason=\"timeout\"}", 0), ("lookup_times{le=\"0.001\"}", 1),
            ("lookup_times{le=\"0.032\"}", 6), ("lookup_times{le=\"+Inf\"}", 7),
        ]
        for (name, value) in expected {
            #expect(found[start + name] == value, "\(name)")
        }
        #expect(found.count == 37 + SharedLevelReason.allCases.count)
    }

    @Test func `the reasons of the shared cache are on its page`() throws {
        let page = try Checkout.page("SharedCache")
        let section = try #require(page.components(separatedBy: "## Reasons\n").dropFirst().first)
        let table = section.components(separatedBy: "\n## ")[0]
        let listed = table.split(separator: "\n").compactMap { line -> String? in
            guard line.hasPrefix("| `") else { return nil }
            return line.split(separator: "`").dropFirst().first.map(String.init)
        }
        #expect(listed == SharedLevelReason.allCases.map(\.rawValue))
    }

    @Test func `the cache has those of both tiers and of the disk tier's files`() {
        let found = values { $0.addCache(Self.store(.ready), limits: (40, 50)) }
        #expect(
            found == [
                "pinfold_cache_size_bytes{tier=\"memory\"}": 1,
                "pinfold_cache_size_bytes{tier=\"disk\"}": 5,
                "pinfold_cache_limit_bytes{tier=\"memory\"}": 40,
                "pinfold_cache_limit_bytes{tier=\"disk\"}": 50,
                "pinfold_cache_memory_heap_bytes{}": 4,
                "pinfold_cache_entries{tier=\"memory\"}": 2,
                "pinfold_cache_entries{tier=\"disk\"}": 6,
                "pinfold_cache_entries_limit{tier=\"disk\"}": 60,
                "pinfold_cache_evictions{tier=\"memory\"}": 3,
                "pinfold_cache_evictions{tier=\"disk\"}": 123,
                "pinfold_cache_disk_state{state=\"off\"}": 0,
                "pinfold_cache_disk_state{state=\"opening\"}": 0,
                "pinfold_cache_disk_state{state=\"on\"}": 1,
                "pinfold_cache_disk_state{state=\"handed_over\"}": 0,
                "pinfold_cache_disk_state{state=\"failed\"}": 0,
                "pinfold_cache_store_queue_bytes{}": 11,
                "pinfold_cache_store_queue_limit_bytes{}": 110,
                "pinfold_cache_store_queue_operations{}": 12,
                "pinfold_cache_store_dropped{}": 9, "pinfold_cache_damaged_entries{}": 10,
                "pinfold_cache_disk_file_bytes{file=\"database\"}": 20,
                "pinfold_cache_disk_file_bytes{file=\"log\"}": 10,
                "pinfold_cache_disk_writes{}": 7,
                "pinfold_cache_disk_evictions{reason=\"bytes\"}": 100,
                "pinfold_cache_disk_evictions{reason=\"entries\"}": 20,
                "pinfold_cache_disk_evictions{reason=\"variants\"}": 3,
                "pinfold_cache_disk_restarts{}": 8,
            ])
    }

    @Test(
        arguments: [
            (.opening, "opening"), (.ready, "on"), (.handedOver, "handed_over"),
            (.off(.full), "failed"), (.off(.disabled), "off"), (nil, "off"),
        ] as [(DiskState?, String)])
    func `the disk tier is in one state, and without it there is no more of it`(
        state: DiskState?, label: String
    ) {
        var service = ServiceMetrics()
        service.addCache(state.map { Self.store($0) }, limits: (40, 50))
        let found = values(service)
        for other in ["off", "opening", "on", "handed_over", "failed"] {
            let value = found["pinfold_cache_disk_state{state=\"\(other)\"}"]
            #expect(value == (other == label ? 1 : 0))
        }
        let hasDisk = label != "off"
        #expect((found["pinfold_cache_entries{tier=\"disk\"}"] != nil) == hasDisk)
        #expect((found["pinfold_cache_disk_writes{}"] != nil) == hasDisk)
        #expect((found["pinfold_cache_entries{tier=\"memory\"}"] != nil) == (state != nil))
        // A family that has no value is declared all the same.
        #expect(service.families.contains { "\($0.name)" == "pinfold_cache_entries" })
        #expect(found["pinfold_cache_memory_heap_bytes{}"] == (state == nil ? 0 : 4))
    }

    @Test func `logs and certificates have theirs`() {
        var issuer = IssuerStatistics()
        (issuer.kept, issuer.waiting, issuer.issued) = (1, 2, 3)
        (issuer.keptLimit, issuer.waitingLimit) = (12, 13)
        (issuer.hits, issuer.coalesced, issuer.failures) = (4, 5, 6)
        let found = values {
            $0.addLogs(
                AccessLogLines(written: 7, dropped: 8),
                OperationalLogLines(written: 9, dropped: 10, suppressed: 11))
            $0.addInterception(issuer)
        }
        #expect(
            found == [
                "pinfold_access_log_lines{}": 7, "pinfold_access_log_dropped_lines{}": 8,
                "pinfold_log_lines{}": 9, "pinfold_log_dropped_lines{}": 10,
                "pinfold_log_suppressed_lines{}": 11, "pinfold_interception_certificates{}": 1,
                "pinfold_interception_certificates_limit{}": 12,
                "pinfold_interception_certificates_waiting{}": 2,
                "pinfold_interception_certificates_waiting_limit{}": 13,
                "pinfold_interception_certificates_issued{}": 3,
                "pinfold_interception_certificate_requests{result=\"kept\"}": 4,
                "pinfold_interception_certificate_requests{result=\"shared\"}": 5,
                "pinfold_interception_certificate_requests{result=\"failed\"}": 6,
            ])
    }

    @Test func `each limit is shown beside what it limits`() {
        var limits = LimitsConfiguration()
        (limits.connections, limits.upstreamPerHost, limits.pending) = (1, 2, 3)
        limits.bufferBytes = 4
        limits.perClient = ClientLimits(connections: 5, exchanges: 6)
        var use = ServiceMetrics.LimitUse()
        (use.client.connections, use.client.exchanges) = (11, 12)
        (use.origin.connections, use.origin.waiting) = (13, 14)
        (use.resolver.pending, use.resolver.pendingLimit) = (15, 16)
        use.passwordChecks = 17
        let found = values { $0.addLimits(limits, passwordChecks: 18, use) }
        #expect(
            found == [
                "pinfold_client_connections_limit{}": 1,
                "pinfold_upstream_connections_limit{}": 1,
                "pinfold_origin_connections_limit{}": 2, "pinfold_origin_waiting_limit{}": 3,
                "pinfold_client_head_buffer_limit_bytes{}": 4,
                "pinfold_per_client_connections_limit{}": 5,
                "pinfold_per_client_exchanges_limit{}": 6,
                "pinfold_busiest_client_connections{}": 11,
                "pinfold_busiest_client_exchanges{}": 12,
                "pinfold_busiest_origin_connections{}": 13, "pinfold_busiest_origin_waiting{}": 14,
                "pinfold_dns_lookups_pending{}": 15, "pinfold_dns_lookups_pending_limit{}": 16,
                "pinfold_password_checks_pending{}": 17,
                "pinfold_password_checks_pending_limit{}": 18,
            ])
    }

    @Test func `reports have every result, from the start`() {
        var reporter = ReportStatistics()
        reporter.counts = [.delivered: 2]
        (reporter.waiting, reporter.waitingBytes) = (3, 400)
        let found = values { $0.addPinReports(reporter) }
        #expect(found.count == ReportResult.allCases.count + 4)
        #expect(found["pinfold_pin_reports{result=\"\(ReportResult.delivered)\"}"] == 2)
        #expect(found["pinfold_pin_reports_waiting{}"] == 3)
        #expect(found["pinfold_pin_reports_waiting_bytes{}"] == 400)
        #expect(
            values { $0.addPinReports(nil) } == [
                "pinfold_pin_reports_waiting{}": 0, "pinfold_pin_reports_waiting_bytes{}": 0,
                "pinfold_pin_reports_waiting_limit{}": 1000,
                "pinfold_pin_reports_waiting_limit_bytes{}": 16_777_216,
            ])
    }

    @Test func `the activity indicator is in one state and counts what it entered`() {
        var indicator = ActivityTracker()
        _ = indicator.begin()
        #expect(
            values { $0.addActivity(indicator) } == [
                "pinfold_activity_state{state=\"not_active\"}": 0,
                "pinfold_activity_state{state=\"delaying_start\"}": 1,
                "pinfold_activity_state{state=\"active\"}": 0,
                "pinfold_activity_state{state=\"delaying_end\"}": 0,
                "pinfold_activity_transitions{state=\"not_active\"}": 0,
                "pinfold_activity_transitions{state=\"delaying_start\"}": 1,
                "pinfold_activity_transitions{state=\"active\"}": 0,
                "pinfold_activity_transitions{state=\"delaying_end\"}": 0,
            ])
    }

    @Test func `each worker shows how busy it is`() {
        let found = values { $0.addWorkers([TurnTimes(), TurnTimes()]) }
        for worker in 0..<2 {
            #expect(found["pinfold_worker_busy_seconds{worker=\"\(worker)\"}"] == 0)
            #expect(found["pinfold_worker_longest_turn_seconds{worker=\"\(worker)\"}"] == 0)
        }
        #expect(found.count == 4)
    }

    @Test func `host entries count the servers in each state`() {
        let entry = EntryReachability(label: "api")
        _ = entry.server("a").note(.responseReceived, for: nil)
        let found = values { $0.addReachability([entry, EntryReachability(label: "db")]) }
        #expect(found.count == 12)
        #expect(found["pinfold_host_reachability{host=\"api\",state=\"reachable\"}"] == 1)
        #expect(found["pinfold_host_reachability{host=\"db\",state=\"reachable\"}"] == 0)
        let name = "pinfold_host_reachability_transitions{host=\"api\",state=\"reachable\"}"
        #expect(found[name] == 1)
        #expect(values { $0.addReachability([]) }.isEmpty)
    }

    @Test func `the configuration has its files and readiness`() {
        var reload = PublishedState.Reload()
        reload.files = [
            ("/a \"b\"", .outdated), ("/c", .unusable(["why"])), ("/d", .current),
        ]
        reload.fileRefusals = 5
        reload.loadedMilliseconds = 1_700_000_000_123
        let found = values { $0.addConfiguration(reload, generation: 6, isReady: false) }
        let files = [
            ("/a \\\"b\\\"", "outdated"), ("/c", "unusable"), ("/d", "current"),
        ]
        for (file, state) in files {
            for other in ["current", "outdated", "unusable"] {
                let name = "pinfold_config_file_state{file=\"\(file)\",state=\"\(other)\"}"
                #expect(found[name] == (other == state ? 1 : 0), "\(name)")
            }
        }
        #expect(found["pinfold_config_generation{}"] == 6)
        #expect(found["pinfold_config_last_reload_successful{}"] == 1)
        #expect(found["pinfold_config_file_refusals{}"] == 5)
        #expect(found["pinfold_config_loaded_timestamp_seconds{}"] == 1_700_000_000.123)
        #expect(found["pinfold_ready{}"] == 0)
        for (succeeded, areUsable) in [(false, true), (true, false), (false, false)] {
            let errors = succeeded ? [] : [ConfigurationFinding("wrong")]
            reload.last = StatusReport.Reload(time: 0, errors: errors)
            reload.filesAreUsable = areUsable
            let found = values { $0.addConfiguration(reload, generation: 6, isReady: true) }
            #expect(found["pinfold_config_last_reload_successful{}"] == 0)
            #expect(found["pinfold_ready{}"] == 1)
        }
    }

    @Test func `the process and its build have theirs`() {
        var process = ProcessFigures()
        process.cpuMicroseconds = 2_500_000
        (process.residentBytes, process.virtualBytes, process.openDescriptors) = (18, 19, 20)
        process.startMilliseconds = 1_600_000_000_500
        func found() -> [String: Double] {
            values {
                $0.addBuild(version: "1.2.3", revision: "abc", swiftVersion: "6.3")
                $0.addProcess(process)
            }
        }
        var expected: [String: Double] = [
            "pinfold_build{version=\"1.2.3\",revision=\"abc\",swift_version=\"6.3\"}": 1,
            "process_cpu_seconds{}": 2.5, "process_open_fds{}": 20,
            "process_resident_memory_bytes{}": 18, "process_virtual_memory_bytes{}": 19,
            "process_start_time_seconds{}": 1_600_000_000.5,
        ]
        #expect(found() == expected)
        process.maximumDescriptors = 21
        expected["process_max_fds{}"] = 21
        #expect(found() == expected)
    }

    /// Those that only grow; the others are gauges.
    private static let counters: Set<String> = [
        "pinfold_cache_evictions", "pinfold_cache_store_dropped",
        "pinfold_cache_damaged_entries", "pinfold_cache_disk_writes",
        "pinfold_cache_disk_evictions", "pinfold_cache_disk_restarts",
        "pinfold_access_log_lines", "pinfold_access_log_dropped_lines", "pinfold_log_lines",
        "pinfold_log_dropped_lines", "pinfold_log_suppressed_lines",
        "pinfold_interception_certificates_issued",
        "pinfold_interception_certificate_requests", "pinfold_pin_reports",
        "pinfold_activity_transitions", "pinfold_host_reachability_transitions",
        "pinfold_config_file_refusals", "process_cpu_seconds", "pinfold_worker_busy_seconds",
    ]

    /// Of every family that there can be.
    @Test func `names are distinct and end in their unit, and counters say nothing more`() {
        var service = ServiceMetrics()
        service.addCache(Self.store(.ready), limits: (1, 1))
        service.addLogs(AccessLogLines(), OperationalLogLines())
        service.addInterception(IssuerStatistics())
        service.addPinReports(ReportStatistics())
        service.addLimits(
            LimitsConfiguration(), passwordChecks: 1, ServiceMetrics.LimitUse())
        service.addWorkers([TurnTimes()])
        service.addActivity(ActivityTracker())
        service.addReachability([EntryReachability(label: "a")])
        service.addConfiguration(PublishedState.Reload(), generation: 1, isReady: true)
        service.addBuild(version: "1", revision: "2", swiftVersion: "3")
        var process = ProcessFigures()
        process.maximumDescriptors = 1
        service.addProcess(process)
        let names = service.families.map { "\($0.name)" }
        #expect(Set(names).count == names.count)
        let kinds = Dictionary(grouping: service.families, by: \.kind)
            .mapValues { Set($0.map { "\($0.name)" }) }
        #expect(kinds[.counter] == Self.counters)
        #expect(kinds[.info] == ["pinfold_build"])
        #expect(kinds[.gauge] == Set(names).subtracting(Self.counters.union(["pinfold_build"])))
        for family in service.families {
            let name = "\(family.name)"
            for unit in ["bytes", "seconds"] {
                #expect(name.hasSuffix("_" + unit) == (family.unit.map { "\($0)" } == unit))
            }
            #expect(!name.hasSuffix("_total") && !name.hasSuffix("_info"))
            #expect("\(family.help)".hasSuffix("."))
        }
    }
}
