func text(_ value: Double, _ digits: Int) -> String {
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    let number = Int64((value * scale).rounded())
    guard digits > 0 else { return grouped(number) }
    let fraction = String(number % Int64(scale))
    return grouped(number / Int64(scale)) + "."
        + String(repeating: "0", count: digits - fraction.count) + fraction
}

func grouped(_ number: Int64) -> String {
    let digits = Array(String(number))
    return String(
        digits.indices.flatMap { place -> [Character] in
            (digits.count - place) % 3 == 0 && place > 0 ? [",", digits[place]] : [digits[place]]
        })
}

func row(_ cells: [String], _ widths: [Int]) -> String {
    "| "
        + zip(cells, widths).map { cell, width in
            String(repeating: " ", count: max(0, width - cell.count)) + cell
        }.joined(separator: " | ") + " |"
}

func table(_ heading: [String], _ rows: [[String]]) {
    let widths = heading.indices.map { column in
        ([heading] + rows).map { $0[column].count }.max() ?? 0
    }
    print(row(heading, widths))
    print(
        "|" + widths.map { String(repeating: "-", count: $0 + 1) + ":" }.joined(separator: "|")
            + "|")
    for one in rows { print(row(one, widths)) }
}

struct Result {
    let way: Way
    let gateways: Int
    let counts: Counts
    let engineBytes: Double
}

func simulate(_ objects: Objects, _ options: Options) -> [Result] {
    var results: [Result] = []
    for gateways in options.gateways {
        for way in Way.allCases {
            var simulation = Simulation(objects, options, way, gateways: gateways)
            simulation.run()
            results.append(
                Result(
                    way: way, gateways: gateways, counts: simulation.counts,
                    engineBytes: simulation.engineBytes))
            simulation.end()
        }
    }
    return results
}

func report(_ results: [Result], _ options: Options) {
    let seconds = Double(options.seconds)
    print("Requests to the origin a second, and the share of all requests:\n")
    table(
        ["gateways", "requests/s"] + Way.allCases.map(\.rawValue),
        options.gateways.map { gateways in
            let ofSize = results.filter { $0.gateways == gateways }
            let requests = Double(ofSize[0].counts.requests)
            return [String(gateways), text(requests / seconds, 0)]
                + ofSize.map {
                    let asked = Double($0.counts.originRequests)
                    return "\(text(asked / seconds, 0)) (\(text(100 * asked / requests, 1)) %)"
                }
        })
    print("\nBodies from the origin, in MB/s:\n")
    table(
        ["gateways"] + Way.allCases.map(\.rawValue),
        options.gateways.map { gateways in
            [String(gateways)]
                + results.filter { $0.gateways == gateways }.map {
                    text($0.counts.originBytes / seconds / 1e6, 1)
                }
        })
    for way in [Way.ownStale, .shared] { reportEngine(results, options, way) }
}

/// What the engine has to do.
func reportEngine(_ results: [Result], _ options: Options, _ way: Way) {
    let seconds = Double(options.seconds)
    print("\nThe engine, in the way \"\(way.rawValue)\":\n")
    table(
        [
            "gateways", "own hits", "shared hits", "waited", "lookups/s", "stores/s", "commands/s",
            "read MB/s", "written MB/s", "memory GiB", "of a processor",
        ],
        results.filter { $0.way == way }.map { result in
            let counts = result.counts
            func share(_ number: Int) -> String {
                text(100 * Double(number) / Double(counts.requests), 1) + " %"
            }
            func each(_ number: Int) -> String { text(Double(number) / seconds, 0) }
            // A lookup is HGETALL and its share of one GET; a store a transaction of eight; a lease
            // is taken and released; two streams are read four times a second.
            let commands =
                Double(
                    counts.lookups + counts.chunksRead + 8 * counts.stores + counts.chunksWritten
                        + 2 * counts.leases) / seconds + 8 * Double(result.gateways)
            var microseconds = Double(counts.lookups) * options.lookupCost
            microseconds += Double(counts.stores) * options.storeCost
            microseconds +=
                Double(counts.chunksRead + counts.chunksWritten + 2 * counts.leases)
                * options.chunkCost
            microseconds += counts.bytesRead / 1024 * options.readCost
            microseconds += counts.bytesWritten / 1024 * options.writeCost
            let load =
                microseconds / seconds / 1e4 + 8 * Double(result.gateways) * options.chunkCost / 1e4
            return [
                String(result.gateways), share(counts.ownHits), share(counts.sharedHits),
                share(counts.waited), each(counts.lookups), each(counts.stores),
                text(commands, 0), text(counts.bytesRead / seconds / 1e6, 1),
                text(counts.bytesWritten / seconds / 1e6, 1),
                text(result.engineBytes / 1_073_741_824, 1), text(load, 1) + " %",
            ]
        })
}
