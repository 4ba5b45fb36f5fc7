// Simulates fleets of gateways, request by request, without processes: what the origin is asked,
// and what the shared level costs its engine. deploy/fleet-simulation compiles and runs it.
//
// Time and random numbers are its own: the same options print the same figures anywhere.

import Glibc

/// What is simulated.
struct Options {
    var gateways = [1, 3, 10, 30, 100]
    var objects = 1_000_000
    var exponent = 0.9
    /// Requests a second and gateway.
    var rate = 500.0
    /// Bytes of the own tiers of a gateway.
    var ownBytes: Int64 = 1 << 30
    /// Seconds until counting begins, and for which it goes on.
    var warmUp = 900
    var seconds = 900
    /// Milliseconds that the origin takes.
    var latency: Int32 = 100
    /// Microseconds of the engine's processor for each lookup, store and chunk, and each KiB that
    /// is read or written.
    var lookupCost = 2.9
    var storeCost = 13.5
    var chunkCost = 4.3
    var readCost = 0.26
    var writeCost = 0.92
    var isCheck = false

    static let help = """
        fleet-simulation [--gateways 1,3,10,30,100] [--objects N] [--zipf EXPONENT]
                         [--rate REQUESTS] [--own MIB] [--warm-up SECONDS] [--seconds SECONDS]
                         [--latency MILLISECONDS] [--costs LOOKUP,STORE,CHUNK,READ,WRITE]
                         [--check]

        Each request goes to a gateway at random, and asks for an object by Zipf's law. Objects are
        of a log-normal size (median 8 KiB, mean 24 KiB, at most 8 MiB), and fresh for a minute
        (20 %), ten minutes (40 %), an hour (30 %) or a day (10 %). Of confirmations, nine of ten
        are answered with 304. A gateway evicts by S3-FIFO, as the real one does, and lets requests
        wait for a response that is under way. The engine is big enough for everything; it begins
        with what it would have after days, and the gateways begin empty and have the time of the
        warm-up (15 minutes, as long as what is counted), in which separate caches get responses of
        any age.

          separate   no shared level
          no lease   a shared level; gateways that miss at the same time all ask the origin
          own stale  with leases; a stale copy of a gateway's own is confirmed with the origin,
                     without asking the engine for a fresh one
          shared     with leases, and the engine is asked before a stale copy is confirmed

        --costs are microseconds of the engine's processor, which the script measures otherwise.
        --check simulates little, compares the separate caches with a closed form, and the ways with
        each other; the status is 1 if they do not agree.
        """
}

// MARK: The command line

func parse(_ arguments: [String]) -> Options? {
    var options = Options()
    var rest = arguments[...]
    while let name = rest.popFirst() {
        if name == "--check" {
            options.isCheck = true
            continue
        }
        guard let value = rest.popFirst() else { return nil }
        let numbers = value.split(separator: ",").compactMap { Double($0) }
        guard numbers.count == value.split(separator: ",").count, let first = numbers.first,
            numbers.allSatisfy({ $0 >= 0 })
        else { return nil }
        switch name {
        case "--gateways": options.gateways = numbers.map { max(1, Int($0)) }
        case "--objects": options.objects = max(1, Int(first))
        case "--zipf": options.exponent = first
        case "--rate": options.rate = first
        case "--own": options.ownBytes = Int64(first) << 20
        case "--warm-up": options.warmUp = Int(first)
        case "--seconds": options.seconds = max(1, Int(first))
        case "--latency": options.latency = Int32(first)
        case "--costs":
            guard numbers.count == 5 else { return nil }
            options.lookupCost = numbers[0]
            options.storeCost = numbers[1]
            options.chunkCost = numbers[2]
            options.readCost = numbers[3]
            options.writeCost = numbers[4]
        default: return nil
        }
    }
    return options
}

@main
enum Program {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let options = parse(arguments) else { return print(Options.help) }
        guard !options.isCheck else { exit(check() ? 0 : 1) }
        let objects = Objects(options.objects, exponent: options.exponent)
        report(simulate(objects, options), options)
    }
}
