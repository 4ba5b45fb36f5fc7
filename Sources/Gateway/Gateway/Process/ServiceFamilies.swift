import Activity
import CacheStore
import EventLoop
import PinObservation
import PinObserving
import PinReporting
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

// The metrics of the whole gateway. Each is declared here, and only here: its name, its help text
// and its value, from what its owner has at the moment of a scrape.
extension ServiceMetrics {
    private typealias Sample = ServiceFamily.Sample

    /// The tiers of the cache and the disk tier's files.
    ///
    /// - Parameters:
    ///   - store: `nil` if the cache is disabled.
    ///   - limits: the configured bytes of the tiers.
    mutating func addCache(_ store: StoreStatistics?, limits: (memory: UInt64, disk: UInt64)) {
        let disk = store.flatMap { $0.diskState == .off(.disabled) ? nil : $0 }
        func tiers(_ memory: (some BinaryInteger)?, _ disk: (some BinaryInteger)?) -> [Sample] {
            let memory = memory.map { Sample(LabelText("tier=\"memory\""), $0) }
            return [memory, disk.map { Sample(LabelText("tier=\"disk\""), $0) }].compactMap { $0 }
        }
        add(
            .gauge, "pinfold_cache_size_bytes", unit: "bytes",
            "Bytes used by cache entries, by tier.", tiers(store?.memoryBytes, disk?.diskBytes))
        add(
            .gauge, "pinfold_cache_limit_bytes", unit: "bytes",
            "Bytes that the cache may use, by tier.",
            tiers(store.map { _ in limits.memory }, disk.map { _ in limits.disk }))
        add(
            .gauge, "pinfold_cache_memory_heap_bytes", unit: "bytes",
            "Bytes of the heap for the memory tier's larger entries, including holes.",
            store?.memoryHeapBytes ?? 0)
        add(
            .gauge, "pinfold_cache_entries", "Stored responses, by tier.",
            tiers(store?.memoryEntries, disk?.diskEntries))
        add(
            .gauge, "pinfold_cache_entries_limit",
            "Limit on stored responses (cache.entries); the memory tier has none.",
            tiers(Int?.none, disk?.diskEntriesLimit))
        add(
            .counter, "pinfold_cache_evictions", "Stored responses removed to make room, by tier.",
            tiers(store?.memoryEvictions, disk?.diskEvictions.total))
        let state =
            switch disk?.diskState {
            case nil: "off"
            case .opening: "opening"
            case .ready: "on"
            case .handedOver: "handed_over"
            case .off: "failed"
            }
        add(
            .gauge, "pinfold_cache_disk_state", "1 for the disk tier's current state.",
            Self.states(["off", "opening", "on", "handed_over", "failed"], current: state))
        if let disk { addDisk(disk) }
    }

    private mutating func addDisk(_ disk: StoreStatistics) {
        add(
            .gauge, "pinfold_cache_store_queue_bytes", unit: "bytes",
            "Bytes waiting to be written to the disk tier.", disk.queueBytes)
        add(
            .gauge, "pinfold_cache_store_queue_limit_bytes", unit: "bytes",
            "Limit on bytes waiting to be written to the disk tier.", disk.queueLimitBytes)
        add(
            .gauge, "pinfold_cache_store_queue_operations", "Operations waiting for the disk tier.",
            disk.queueDepth)
        add(
            .counter, "pinfold_cache_store_dropped",
            "Times that a response was not written to the disk tier for lack of room.",
            disk.diskSkipped)
        add(
            .counter, "pinfold_cache_damaged_entries",
            "Entries of the disk tier that failed their checksum and were dropped.",
            disk.damagedEntries)
        add(
            .gauge, "pinfold_cache_disk_file_bytes", unit: "bytes",
            "Bytes of the disk tier's files: the database and its write-ahead log.",
            [
                Sample(LabelText("file=\"database\""), disk.diskFileBytes - disk.diskLogBytes),
                Sample(LabelText("file=\"log\""), disk.diskLogBytes),
            ])
        add(
            .counter, "pinfold_cache_disk_writes", "Responses written to the disk tier.",
            disk.diskWrites)
        add(
            .counter, "pinfold_cache_disk_evictions",
            "Responses removed from the disk tier, by the limit that was exceeded.",
            [
                Sample(LabelText("reason=\"bytes\""), disk.diskEvictions.bytes),
                Sample(LabelText("reason=\"entries\""), disk.diskEvictions.entries),
                Sample(LabelText("reason=\"variants\""), disk.diskEvictions.variants),
            ])
        add(
            .counter, "pinfold_cache_disk_restarts",
            "Times that the disk tier was recreated: it was damaged or files were missing.",
            disk.diskRestarts)
    }

    mutating func addAccessRules(
        _ rules: [(name: String, counts: EventCounts<RuleEvent>, hasRate: Bool)]
    ) {
        add(
            .counter, "pinfold_access_rule_matches",
            "Requests and tunnels that a rule of access.rules decided or reported.",
            rules.map { Sample(LabelText("rule", $0.name), $0.counts[.matched]) })
        add(
            .counter, "pinfold_access_rate_limited",
            "Requests and tunnels beyond the rate of a rule of access.rules, by what happened.",
            rules.filter(\.hasRate).flatMap { rule in
                RuleEvent.ofRates.map { event in
                    var labels = LabelText("rule", rule.name)
                    labels.append("result", "\(event)")
                    return Sample(labels, rule.counts[event])
                }
            })
    }

    /// The proxies through which servers are reached.
    mutating func addParents(
        _ parents: [(
            name: String, isDown: Bool, counts: EventCounts<ParentEvent>,
            failures: EventCounts<ParentFailureReason>
        )]
    ) {
        add(
            .gauge, "pinfold_parent_up",
            "Whether a parent proxy is used: 1, or 0 while it is down.",
            parents.map { Sample(LabelText("parent", $0.name), $0.isDown ? 0 : 1) })
        add(
            .counter, "pinfold_parent_connections",
            "Connections made to a parent proxy that forwards requests, and tunnels through it.",
            parents.map { Sample(LabelText("parent", $0.name), $0.counts[.connections]) })
        add(
            .counter, "pinfold_parent_requests",
            "Requests and tunnels that were sent through a parent proxy.",
            parents.map { Sample(LabelText("parent", $0.name), $0.counts[.requests]) })
        add(
            .counter, "pinfold_parent_failures",
            "Requests, tunnels and probes that a parent proxy did not serve, by cause.",
            parents.flatMap { parent in
                ParentFailureReason.allCases.map { failure in
                    var labels = LabelText("parent", parent.name)
                    labels.append("cause", failure.label)
                    return Sample(labels, parent.failures[failure])
                }
            })
    }

    /// What those do who have proved who they are, by their groups.
    mutating func addGroups(_ groups: [(name: String, counts: EventCounts<GroupEvent>)]) {
        func samples(_ event: GroupEvent) -> [Sample] {
            groups.map { Sample(LabelText("group", $0.name), $0.counts[event]) }
        }
        add(
            .counter, "pinfold_group_requests",
            "Requests and tunnels of the members of a group that ended.", samples(.exchanges))
        add(
            .counter, "pinfold_group_received_bytes", unit: "bytes",
            "Bytes of content and in tunnels received from the members of a group.",
            samples(.bytesReceived))
        add(
            .counter, "pinfold_group_sent_bytes", unit: "bytes",
            "Bytes of content and in tunnels sent to the members of a group.",
            samples(.bytesSent))
    }

    mutating func addLogs(_ access: AccessLogLines, _ operational: OperationalLogLines) {
        add(.counter, "pinfold_access_log_lines", "Access log lines written.", access.written)
        add(
            .counter, "pinfold_access_log_dropped_lines",
            "Access log lines dropped because the queue was full or writing failed.",
            access.dropped)
        add(
            .counter, "pinfold_log_lines", "Lines of the operational log written.",
            operational.written)
        add(
            .counter, "pinfold_log_dropped_lines",
            "Lines of the operational log dropped because nobody read it.", operational.dropped)
        add(
            .counter, "pinfold_log_suppressed_lines",
            "Messages counted but not written because there were too many similar ones.",
            operational.suppressed)
    }

    /// The certificates for intercepted tunnels.
    mutating func addInterception(_ issuer: IssuerStatistics) {
        add(
            .gauge, "pinfold_interception_certificates",
            "Cached certificates issued for intercepted tunnels.", issuer.kept)
        add(
            .gauge, "pinfold_interception_certificates_limit",
            "Limit on cached certificates (interception.maximumCertificates).", issuer.keptLimit)
        add(
            .gauge, "pinfold_interception_certificates_waiting",
            "Names waiting for a certificate.", issuer.waiting)
        add(
            .gauge, "pinfold_interception_certificates_waiting_limit",
            "Limit on names waiting for a certificate.", issuer.waitingLimit)
        add(
            .counter, "pinfold_interception_certificates_issued", "Certificates issued.",
            issuer.issued)
        add(
            .counter, "pinfold_interception_certificate_requests",
            "Handshakes that needed a certificate and did not have one issued, by result.",
            [
                Sample(LabelText("result=\"kept\""), issuer.hits),
                Sample(LabelText("result=\"shared\""), issuer.coalesced),
                Sample(LabelText("result=\"failed\""), issuer.failures),
            ])
    }

    /// The results for pin failures to report, and what is waiting.
    ///
    /// - Parameter reporter: `nil` if nothing is reported.
    mutating func addPinReports(_ reporter: ReportStatistics?) {
        add(
            .counter, "pinfold_pin_reports",
            "Pin failures to report (pinsets.*.reportTo) and their reports, by result.",
            reporter.map { reporter in
                ReportResult.allCases.map {
                    Sample(LabelText("result", "\($0)"), reporter.counts[$0] ?? 0)
                }
            } ?? [])
        add(
            .gauge, "pinfold_pin_reports_waiting",
            "Reports of pin failures that are waiting for delivery.", reporter?.waiting ?? 0)
        add(
            .gauge, "pinfold_pin_reports_waiting_limit",
            "Limit on reports that are waiting for delivery.", ReportStatistics.waitingLimit)
        add(
            .gauge, "pinfold_pin_reports_waiting_bytes", unit: "bytes",
            "Bytes of the reports that are waiting for delivery.", reporter?.waitingBytes ?? 0)
        add(
            .gauge, "pinfold_pin_reports_waiting_limit_bytes", unit: "bytes",
            "Limit on bytes of the reports that are waiting for delivery.",
            ReportStatistics.waitingLimitBytes)
    }

    /// The servers whose keys are remembered.
    mutating func addPinObservations(_ observations: ObservationStatistics) {
        add(
            .gauge, "pinfold_pin_observed_hosts",
            "Servers whose keys are remembered (pins: observe).", observations.hosts)
        add(
            .gauge, "pinfold_pin_observed_hosts_limit",
            "Limit on servers whose keys are remembered.", ObservationTable.hostsLimit)
        add(
            .counter, "pinfold_pin_observed_new_keys",
            "Keys that servers without pins showed for the first time, by the issuer's key.",
            [
                Sample(LabelText("issuer=\"known\""), observations.newKeysOfKnownIssuers),
                Sample(LabelText("issuer=\"new\""), observations.newKeysOfNewIssuers),
            ])
        add(
            .counter, "pinfold_pin_observed_forgotten_hosts",
            "Servers whose keys were forgotten to make room for others.", observations.forgotten)
    }

    /// How busy each worker is.
    mutating func addWorkers(_ workers: [TurnTimes]) {
        func samples(_ nanoseconds: (TurnTimes) -> Int64) -> [Sample] {
            workers.enumerated().map { index, worker in
                Sample(
                    LabelText("worker", "\(index)"),
                    millionths: UInt64(clamping: nanoseconds(worker) / 1000))
            }
        }
        add(
            .counter, "pinfold_worker_busy_seconds", unit: "seconds",
            "Time in which a worker did something; the rest of the time it waited for events.",
            samples { $0.busyNanoseconds() })
        add(
            .gauge, "pinfold_worker_longest_turn_seconds", unit: "seconds",
            "Longest time lately for which a worker did not look for new events.",
            samples { $0.longestNanoseconds() })
    }

    mutating func addActivity(_ indicator: ActivityTracker) {
        let labels = ActivityState.allCases.map { "\($0.label)" }
        add(
            .gauge, "pinfold_activity_state", "1 for the current state of the activity indicator.",
            Self.states(labels, current: "\(indicator.state.label)"))
        add(
            .counter, "pinfold_activity_transitions",
            "Times that the activity indicator entered a state.",
            ActivityState.allCases.map {
                Sample(
                    LabelText("state", $0.label), indicator.transitions[Int($0.rawValue)])
            })
    }

    /// The reachability of the servers of host entries.
    mutating func addReachability(_ entries: [EntryReachability]) {
        guard !entries.isEmpty else { return }
        func samples(_ value: (EntryReachability, ReachabilityState) -> UInt64) -> [Sample] {
            entries.flatMap { entry in
                ReachabilityState.allCases.map { state in
                    var labels = LabelText("host", entry.label)
                    labels.append("state", state.label)
                    return Sample(labels, value(entry, state))
                }
            }
        }
        add(
            .gauge, "pinfold_host_reachability",
            "Servers of a host entry that are in a state of reachability.",
            samples { UInt64(clamping: $0.count(in: $1)) })
        add(
            .counter, "pinfold_host_reachability_transitions",
            "Times that a server of a host entry entered a state of reachability.",
            samples { $0.transitions(to: $1) })
    }

    /// The configuration in force, and whether the gateway accepts new work under it.
    ///
    /// - Parameter generation: the one that all workers use.
    mutating func addConfiguration(
        _ reload: PublishedState.Reload, generation: UInt64, isReady: Bool
    ) {
        add(
            .gauge, "pinfold_config_generation",
            "The number of the configuration that all workers use; each reload adds one.",
            generation)
        add(
            .gauge, "pinfold_config_last_reload_successful",
            "1 if the latest reload succeeded and no watched file is unusable, otherwise 0.",
            reload.lastSucceeded && reload.filesAreUsable ? 1 : 0)
        add(
            .gauge, "pinfold_config_file_state", "1 for the current state of a watched file.",
            reload.files.flatMap { file in
                Self.states(
                    WatchedFiles.Outcome.labels, current: file.outcome.label,
                    of: LabelText("file", file.path))
            })
        add(
            .counter, "pinfold_config_file_refusals",
            "Times that a watched file had changed but could not be used.", reload.fileRefusals)
        add(
            .gauge, "pinfold_config_loaded_timestamp_seconds", unit: "seconds",
            "When the configuration in force was loaded, in seconds since 1970.",
            [Sample(millionths: reload.loadedMilliseconds &* 1000)])
        add(
            .gauge, "pinfold_ready", "1 if the gateway accepts new work, otherwise 0.",
            isReady ? 1 : 0)
    }

    mutating func addBuild(version: String, revision: String, swiftVersion: String) {
        var labels = LabelText("version", version)
        labels.append("revision", revision)
        labels.append("swift_version", swiftVersion)
        add(.info, "pinfold_build", "The version that is running.", [Sample(labels, 1)])
    }

    /// The process's metrics under the names that all Prometheus clients use.
    mutating func addProcess(_ process: ProcessFigures) {
        add(
            .counter, "process_cpu_seconds", unit: "seconds",
            "Total user and system CPU time spent.", [Sample(millionths: process.cpuMicroseconds)])
        add(
            .gauge, "process_open_fds", "Number of open file descriptors.", process.openDescriptors)
        if let maximum = process.maximumDescriptors {
            add(.gauge, "process_max_fds", "Maximum number of open file descriptors.", maximum)
        }
        add(
            .gauge, "process_resident_memory_bytes", unit: "bytes",
            "Resident memory size in bytes.", process.residentBytes)
        add(
            .gauge, "process_virtual_memory_bytes", unit: "bytes", "Virtual memory size in bytes.",
            process.virtualBytes)
        add(
            .gauge, "process_start_time_seconds", unit: "seconds",
            "Start time of the process since unix epoch in seconds.",
            [Sample(millionths: process.startMilliseconds &* 1000)])
    }

    /// One sample for each state, which is 1 for the current one.
    private static func states(
        _ all: [String], current: String, of labels: LabelText = .none
    ) -> [Sample] {
        all.map { state in
            var labels = labels
            labels.append("state", state)
            return Sample(labels, state == current ? 1 : 0)
        }
    }
}
