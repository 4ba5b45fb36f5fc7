/// The share of requests that a cache without a limit passes on, by the closed form: an object with
/// the rate r that is fresh for T, and takes L to come, is asked for once in T + 1/r, as what comes
/// within L waits.
func expectedShare(_ objects: Objects, rate: Double) -> Double {
    (0..<objects.count).reduce(0.0) { sum, object in
        let own = objects.probabilities[object]
        // The age begins when it has come: it is served during L and T.
        let life = Double(objects.lifetimes[object]) / 1000 + 0.1
        return sum + own / (1 + own * rate * life)
    }
}

func check() -> Bool {
    var options = Options()
    options.objects = 20_000
    options.rate = 2000
    options.warmUp = 600
    options.seconds = 600
    let objects = Objects(options.objects, exponent: options.exponent)
    var isRight = true
    func expect(_ condition: Bool, _ text: String) {
        print((condition ? "right: " : "wrong: ") + text)
        isRight = isRight && condition
    }
    options.gateways = [1, 4]
    // An object that is fresh for a day is asked for once at most: within the warm-up, or never.
    for object in 0..<objects.count {
        objects.lifetimes[object] = min(objects.lifetimes[object], 60_000)
    }
    options.ownBytes = 1 << 50
    let unlimited = simulate(objects, options)
    func share(_ results: [Result], _ way: Way, _ gateways: Int) -> Double {
        let counts = results.first { $0.way == way && $0.gateways == gateways }?.counts
        return Double(counts?.originRequests ?? 0) / Double(counts?.requests ?? 1)
    }
    let one = share(unlimited, .separate, 1)
    let expected = expectedShare(objects, rate: options.rate)
    expect(
        one > expected * 0.99 && one < expected * 1.01,
        "one cache without a limit passes on \(text(100 * one, 2)) %, by the closed form "
            + "\(text(100 * expected, 2)) %")
    let fleet = share(unlimited, .shared, 4)
    let asOne = expectedShare(objects, rate: options.rate * 4)
    expect(
        fleet > asOne * 0.98 && fleet < asOne * 1.02,
        "four with a shared level pass on what one cache with all requests would: "
            + "\(text(100 * fleet, 2)) % and \(text(100 * asOne, 2)) %")
    let separate = share(unlimited, .separate, 4)
    expect(
        separate > one * 0.99 && separate < one * 1.01,
        "four separate caches pass on the same share as one: \(text(100 * separate, 2)) %")
    options.ownBytes = 32 << 20
    let limited = simulate(objects, options)
    expect(
        share(limited, .separate, 4) > separate * 1.1,
        "with small tiers they pass on more: \(text(100 * share(limited, .separate, 4), 2)) %")
    expect(
        share(limited, .shared, 4) < fleet * 1.02,
        "with a shared level they do not: \(text(100 * share(limited, .shared, 4), 2)) %")
    let ways = Way.allCases.map { share(limited, $0, 4) }
    expect(
        ways.allSatisfy { $0 <= ways[0] && $0 >= ways[3] },
        "the ways between ask the origin for more than that and less than separate caches: "
            + ways.map { text(100 * $0, 2) + " %" }.joined(separator: ", "))
    return isRight
}
