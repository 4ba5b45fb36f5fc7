extension ExpositionWriter {
    /// The metrics that belong to the whole gateway.
    mutating func writeService(_ service: ServiceMetrics) {
        writeTiers(service)
        writeStore(service)
        if let disk = service.disk { writeDisk(disk) }
        family("pinfold_access_log_lines", .counter, help: "Access log lines written.")
        sample(service.accessLog.written)
        family(
            "pinfold_access_log_dropped_lines", .counter,
            help: "Access log lines dropped because the queue was full or writing failed.")
        sample(service.accessLog.dropped)
        writeOperationalLog(service.operationalLog)
        writeInterception(service.interception)
        writePinReports(service.pinReports)
        writeLimits(service)
        writeStates(service)
        writeConfiguration(service)
    }

    private mutating func writeLimits(_ service: ServiceMetrics) {
        guard let connections = service.connectionLimit, let waiting = service.waitingLimit
        else { return }
        family(
            "pinfold_origin_connections_limit", .gauge,
            help: "Limit on connections to one server (limits.upstreamPerHost).")
        sample(connections)
        family(
            "pinfold_origin_waiting_limit", .gauge,
            help: "Limit on exchanges waiting for a connection to one server (limits.pending).")
        sample(waiting)
    }

    private mutating func writeOperationalLog(_ log: OperationalLogMetrics) {
        family("pinfold_log_lines", .counter, help: "Lines of the operational log written.")
        sample(log.written)
        family(
            "pinfold_log_dropped_lines", .counter,
            help: "Lines of the operational log dropped because nobody read it.")
        sample(log.dropped)
        family(
            "pinfold_log_suppressed_lines", .counter,
            help: "Messages counted but not written because there were too many similar ones.")
        sample(log.suppressed)
    }

    private mutating func writeInterception(_ metrics: InterceptionMetrics) {
        family(
            "pinfold_interception_certificates", .gauge,
            help: "Cached certificates issued for intercepted tunnels.")
        sample(metrics.kept)
        family(
            "pinfold_interception_certificates_waiting", .gauge,
            help: "Names waiting for a certificate.")
        sample(metrics.waiting)
        family(
            "pinfold_interception_certificates_issued", .counter, help: "Certificates issued.")
        sample(metrics.issued)
        family(
            "pinfold_interception_certificate_requests", .counter,
            help: "Handshakes that needed a certificate and did not have one issued, by result.")
        sample(LabelText("result=\"kept\""), metrics.hits)
        sample(LabelText("result=\"shared\""), metrics.coalesced)
        sample(LabelText("result=\"failed\""), metrics.failures)
    }

    private mutating func writeTiers(_ service: ServiceMetrics) {
        let tiers: [(LabelText, CacheTierMetrics)] = [
            service.memoryTier.map { (LabelText("tier=\"memory\""), $0) },
            service.diskTier.map { (LabelText("tier=\"disk\""), $0) },
        ].compactMap { $0 }
        family(
            "pinfold_cache_size_bytes", .gauge, help: "Bytes used by cache entries, by tier.",
            unit: "bytes")
        for (labels, tier) in tiers { sample(labels, tier.bytes) }
        family(
            "pinfold_cache_limit_bytes", .gauge, help: "Bytes that the cache may use, by tier.",
            unit: "bytes")
        for (labels, tier) in tiers { sample(labels, tier.limitBytes) }
        family(
            "pinfold_cache_memory_heap_bytes", .gauge,
            help: "Bytes of the heap for the memory tier's larger entries, including holes.",
            unit: "bytes")
        sample(service.memoryHeapBytes)
        family("pinfold_cache_entries", .gauge, help: "Stored responses, by tier.")
        for (labels, tier) in tiers { sample(labels, tier.entries) }
        family(
            "pinfold_cache_evictions", .counter,
            help: "Stored responses removed to make room, by tier.")
        for (labels, tier) in tiers { sample(labels, tier.evictions) }
    }

    private mutating func writeStore(_ service: ServiceMetrics) {
        family(
            "pinfold_cache_disk_state", .gauge,
            help: "1 for the disk tier's current state.")
        for state in DiskTierState.allCases {
            sample(LabelText("state", state.label), state == service.diskState ? 1 : 0)
        }
        guard let queue = service.storeQueue else { return }
        family(
            "pinfold_cache_store_queue_bytes", .gauge,
            help: "Bytes waiting to be written to the disk tier.", unit: "bytes")
        sample(queue.bytes)
        family(
            "pinfold_cache_store_queue_operations", .gauge,
            help: "Operations waiting for the disk tier.")
        sample(queue.operations)
        family(
            "pinfold_cache_store_dropped", .counter,
            help: "Times that a response was not written to the disk tier for lack of room.")
        sample(queue.dropped)
        family(
            "pinfold_cache_damaged_entries", .counter,
            help: "Entries of the disk tier that failed their checksum and were dropped.")
        sample(queue.damaged)
    }

    private mutating func writeDisk(_ disk: DiskMetrics) {
        family(
            "pinfold_cache_disk_file_bytes", .gauge,
            help: "Bytes of the disk tier's files: the database and its write-ahead log.",
            unit: "bytes")
        sample(LabelText("file=\"database\""), disk.databaseBytes)
        sample(LabelText("file=\"log\""), disk.logBytes)
        family(
            "pinfold_cache_disk_writes", .counter, help: "Responses written to the disk tier.")
        sample(disk.writes)
        family(
            "pinfold_cache_disk_evictions", .counter,
            help: "Responses removed from the disk tier, by the limit that was exceeded.")
        sample(LabelText("reason=\"bytes\""), disk.evictedForBytes)
        sample(LabelText("reason=\"entries\""), disk.evictedForEntries)
        sample(LabelText("reason=\"variants\""), disk.evictedForVariants)
        family(
            "pinfold_cache_disk_restarts", .counter,
            help: "Times that the disk tier was recreated: it was damaged or files were missing.")
        sample(disk.restarts)
    }

    private mutating func writeStates(_ service: ServiceMetrics) {
        if let activity = service.activity {
            family(
                "pinfold_activity_state", .gauge,
                help: "1 for the current state of the activity indicator.")
            for (index, state) in activity.states.enumerated() {
                sample(LabelText("state", state.label), index == activity.current ? 1 : 0)
            }
            family(
                "pinfold_activity_transitions", .counter,
                help: "Times that the activity indicator entered a state.")
            for state in activity.states {
                sample(LabelText("state", state.label), state.transitions)
            }
        }
        guard !service.reachability.isEmpty else { return }
        family(
            "pinfold_host_reachability", .gauge,
            help: "Servers of a host entry that are in a state of reachability.")
        for entry in service.reachability {
            let labels = LabelText("host", entry.label)
            for state in entry.states {
                begin(labels)
                label("state", state.label)
                end(state.servers)
            }
        }
        family(
            "pinfold_host_reachability_transitions", .counter,
            help: "Times that a server of a host entry entered a state of reachability.")
        for entry in service.reachability {
            let labels = LabelText("host", entry.label)
            for state in entry.states {
                begin(labels)
                label("state", state.label)
                end(state.transitions)
            }
        }
    }

    private mutating func writeConfiguration(_ service: ServiceMetrics) {
        family(
            "pinfold_config_generation", .gauge,
            help: "The number of the configuration that all workers use; each reload adds one.")
        sample(service.configurationGeneration)
        family(
            "pinfold_config_last_reload_successful", .gauge,
            help: "1 if the latest reload succeeded and no watched file is unusable, otherwise 0.")
        sample(service.lastReloadSucceeded ? 1 : 0)
        writeWatchedFiles(service)
        family(
            "pinfold_own_certificate_expiry_seconds", .gauge,
            help: "Time left for a certificate that the gateway itself presents or issues with.",
            unit: "seconds")
        for certificate in service.ownCertificates {
            var labels = LabelText("use", certificate.use.rawValue)
            labels.append("file", certificate.file)
            sample(labels, signed: certificate.notAfter - service.wallSeconds)
        }
        family(
            "pinfold_config_loaded_timestamp_seconds", .gauge,
            help: "When the configuration in force was loaded, in seconds since 1970.",
            unit: "seconds")
        sample(millionths: service.configurationLoadedMilliseconds &* 1000)
        family(
            "pinfold_ready", .gauge,
            help: "1 if the gateway accepts new work, otherwise 0.")
        sample(service.isReady ? 1 : 0)
    }

    private mutating func writeWatchedFiles(_ service: ServiceMetrics) {
        family(
            "pinfold_config_file_state", .gauge,
            help: "1 for the current state of a watched file.")
        for file in service.watchedFiles {
            for state in WatchedFileState.allCases {
                var labels = LabelText("file", file.path)
                labels.append("state", state.label)
                sample(labels, state == file.state ? 1 : 0)
            }
        }
        family(
            "pinfold_config_file_refusals", .counter,
            help: "Times that a watched file had changed but could not be used.")
        sample(service.fileRefusals)
    }

    /// The build.
    mutating func writeBuild(_ build: BuildInfo) {
        family("pinfold_build", .info, help: "The version that is running.")
        var labels = LabelText("version", build.version)
        labels.append("revision", build.revision)
        labels.append("swift_version", build.swiftVersion)
        sample(labels, 1)
    }

    /// The process's metrics under the names that all Prometheus clients use.
    mutating func writeProcess(_ process: ProcessMetrics) {
        family(
            "process_cpu_seconds", .counter, help: "Total user and system CPU time spent.",
            unit: "seconds")
        sample(millionths: process.cpuMicroseconds)
        family("process_open_fds", .gauge, help: "Number of open file descriptors.")
        sample(process.openDescriptors)
        if let maximum = process.maximumDescriptors {
            family("process_max_fds", .gauge, help: "Maximum number of open file descriptors.")
            sample(maximum)
        }
        family(
            "process_resident_memory_bytes", .gauge, help: "Resident memory size in bytes.",
            unit: "bytes")
        sample(process.residentBytes)
        family(
            "process_virtual_memory_bytes", .gauge, help: "Virtual memory size in bytes.",
            unit: "bytes")
        sample(process.virtualBytes)
        family(
            "process_start_time_seconds", .gauge,
            help: "Start time of the process since unix epoch in seconds.", unit: "seconds")
        sample(millionths: process.startMilliseconds &* 1000)
    }
}
