extension ExpositionWriter {
    /// The metrics of exchanges by listener and host entry, and pin evaluations.
    ///
    /// A request series appears with its first exchange: all combinations of the labels would be
    /// several hundred series per route, most of them always zero. The same applies to a series of
    /// a reason with a route. Failures by reason alone, and by host entry alone, have series from
    /// the start, so that the first failure is an increase.
    mutating func writeExchanges(_ snapshot: MetricsSnapshot) {
        let routes = snapshot.routeSeries()
        family(
            "pinfold_http_requests", .counter,
            help: "Exchanges that ended, by method, status class and cache result.")
        for route in routes { writeRequests(route) }
        writeStatusCodes(routes)

        for one in RouteHistogram.all {
            family(one.name, .histogram, help: one.help, unit: one.unit)
            let scale = HistogramScale(one.buckets, inMillionths: one.inMillionths)
            for route in routes { histogram(route.labels, route.totals(at: one.offset), scale) }
        }
        writeStreams(routes)
        writeCacheBytes(routes)
        writeReasons(routes, snapshot)
        writePinsets(snapshot)
    }

    private mutating func writeStreams(_ routes: [RouteSeries]) {
        family(
            "pinfold_http_stream_duration_seconds", .histogram,
            help: "How long tunnels, upgraded connections and event streams lasted, by kind.",
            unit: "seconds")
        let scale = HistogramScale(.streams, inMillionths: true)
        for route in routes {
            for kind in ExchangeKind.allCases where kind != .request {
                let totals = route.totals(at: RouteLayout.stream(kind))
                guard totals.count > 0 else { continue }
                var labels = route.labels
                labels.append("kind", kind.label)
                histogram(labels, totals, scale)
            }
        }
    }

    private mutating func writeCacheBytes(_ routes: [RouteSeries]) {
        family(
            "pinfold_http_response_content_bytes", .counter,
            help: "Bytes of response content sent to clients, by cache result.", unit: "bytes")
        for route in routes {
            for cache in CacheResult.allCases {
                let bytes = route.total(at: RouteLayout.cacheBytes(cache))
                guard bytes > 0 else { continue }
                begin(route.labels)
                label("cache", cache.label)
                end(bytes)
            }
        }
    }

    private mutating func writeRequests(_ route: RouteSeries) {
        for method in MetricMethod.allCases {
            for code in CodeClass.allCases {
                for cache in CacheResult.allCases {
                    let count = route.total(at: RouteLayout.series(method, code, cache))
                    guard count > 0 else { continue }
                    begin(route.labels)
                    label("method", method.label)
                    label("code_class", code.label)
                    label("cache", cache.label)
                    end(count)
                }
            }
        }
    }

    private mutating func writeReasons(_ routes: [RouteSeries], _ snapshot: MetricsSnapshot) {
        family(
            "pinfold_http_request_failures", .counter,
            help: "Exchanges that were refused, failed or cut off, by reason.")
        writeReasons(routes, snapshot.reasons, at: RouteLayout.failures)
        family(
            "pinfold_failures", .counter,
            help: "Exchanges that were refused, failed or cut off, by reason; all reasons.")
        for index in snapshot.reasons.indices {
            begin(.none)
            label("reason", snapshot.reasons[index])
            end(snapshot.workers.reduce(UInt64(0)) { $0 &+ $1.failures(reason: index) })
        }
        family(
            "pinfold_cache_not_stored", .counter,
            help: "Responses that were not stored, by reason.")
        writeReasons(routes, snapshot.notStored, at: RouteLayout.notStored)
        writeTransformations(routes)
    }

    private mutating func writeReasons(
        _ routes: [RouteSeries], _ reasons: [String], at start: Int
    ) {
        for route in routes {
            for index in reasons.indices {
                let count = route.total(at: start + index)
                guard count > 0 else { continue }
                begin(route.labels)
                label("reason", reasons[index])
                end(count)
            }
        }
    }

    /// The counters, gauges and durations that the workers keep without a route.
    mutating func writeWorkerFamilies(_ snapshot: MetricsSnapshot) {
        let workers = snapshot.workers
        for metric in CounterFamily.all {
            family(metric.name, .counter, help: metric.help, unit: metric.unit)
            for series in metric.series {
                let total = workers.reduce(UInt64(0)) { $0 &+ $1.value(series.counter) }
                sample(LabelText(series.labels), total)
            }
        }
        for metric in GaugeFamily.all {
            family(metric.name, .gauge, help: metric.help)
            sample(signed: workers.reduce(Int64(0)) { $0 &+ $1.value(metric.gauge) })
        }
        let scale = HistogramScale(.durations, inMillionths: true)
        for metric in DurationFamily.all {
            family(metric.name, .histogram, help: metric.help, unit: "seconds")
            var totals = HistogramTotals()
            for worker in workers { worker.addCells(of: metric.histogram, to: &totals) }
            histogram(.none, totals, scale)
        }
    }
}

/// A histogram of every route.
private struct RouteHistogram {
    var name: StaticString
    var unit: StaticString
    var help: StaticString
    /// Where its cells begin in a route's block.
    var offset: Int
    var buckets: HistogramBuckets
    /// Observations are in millionths of the unit.
    var inMillionths = false

    static var all: [RouteHistogram] {
        [
            RouteHistogram(
                name: "pinfold_http_request_duration_seconds", unit: "seconds",
                help: "Time from a request's complete head to its response's end, without streams.",
                offset: RouteLayout.duration, buckets: .durations, inMillionths: true),
            RouteHistogram(
                name: "pinfold_upstream_first_byte_seconds", unit: "seconds",
                help: "Time from sending a request's head to receiving the response's head.",
                offset: RouteLayout.firstByte, buckets: .durations, inMillionths: true),
            RouteHistogram(
                name: "pinfold_http_request_size_bytes", unit: "bytes",
                help: "Sizes of request bodies.", offset: RouteLayout.requestSize,
                buckets: .sizes),
            RouteHistogram(
                name: "pinfold_http_response_size_bytes", unit: "bytes",
                help: "Sizes of response bodies.", offset: RouteLayout.responseSize,
                buckets: .sizes),
        ]
    }
}

/// A route with traffic: its label and its blocks of all workers.
struct RouteSeries {
    var labels: LabelText
    var blocks: [CounterCells]
    /// Those of status codes that are rare.
    var rareBlocks: [CounterCells]

    func total(at cell: Int) -> UInt64 {
        var total: UInt64 = 0
        for block in blocks { total &+= block[cell] }
        return total
    }

    func totals(at start: Int) -> HistogramTotals {
        var totals = HistogramTotals()
        for block in blocks { totals.add(block, at: start) }
        return totals
    }
}

extension MetricsSnapshot {
    /// The routes that have had an exchange; those of shared names come last.
    func routeSeries() -> [RouteSeries] {
        let hosts = self.hosts.inForceAndOther
        var series: [RouteSeries] = []
        for listener in listeners.inForceAndOther {
            let listenerText = LabelText("listener", listener.label)
            for host in hosts {
                let index = RouteIndex(listener: listener.index, host: host.index)
                let blocks = workers.compactMap { $0.block(route: index) }
                guard !blocks.isEmpty else { continue }
                var labels = listenerText
                labels.append("host", host.label)
                let rareBlocks = workers.compactMap { $0.rareCodes(route: index) }
                series.append(
                    RouteSeries(labels: labels, blocks: blocks, rareBlocks: rareBlocks))
            }
        }
        return series
    }
}

extension LabelTable {
    /// The values that have series: those in force, the permanent ones, and finally `other`.
    var inForceAndOther: [(index: LabelIndex, label: String)] {
        inForce + [(.other, LabelTable.overflowLabel)]
    }
}
