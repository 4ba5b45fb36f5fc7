/// Smooth weighted round robin: each server gets its share of any stretch of requests, and the
/// turns of one with a large weight are spread over it, not in a row.
///
/// Each time, every candidate's credit grows by its weight; the one with the most is chosen, and
/// pays the sum of all weights.
struct SmoothRoundRobin {
    private var credits: [Int64]

    /// - Parameters:
    ///   - weights: of all servers, to begin with.
    ///   - random: where it begins, so that workers do not all begin with the same server.
    init(weights: [Int], random: UInt64) {
        credits = weights.enumerated().map { index, weight in
            Int64(mixed(random &+ UInt64(index)) % UInt64(max(1, weight)))
        }
    }

    /// - Parameters:
    ///   - candidates: not empty.
    ///   - weights: of all servers; those of candidates are above 0.
    mutating func next(of candidates: ServerMask, weights: [Int]) -> Int {
        var chosen = candidates.first
        var sum: Int64 = 0
        for index in candidates {
            sum += Int64(weights[index])
            credits[index] += Int64(weights[index])
            if credits[index] > credits[chosen] { chosen = index }
        }
        credits[chosen] -= sum
        return chosen
    }
}

/// The servers with the fewest requests under way in proportion to their weights. Idle servers are
/// equal, whatever they weigh: whose turn it is among them is decided by weight, so that they get
/// their shares also where requests are too few for any to wait.
func leastLoaded(
    of candidates: ServerMask, weights: [Int], requests: (Int) -> Int
) -> ServerMask {
    var least = ServerMask()
    var best = (requests: 0, weight: 1)
    for index in candidates {
        let load = max(0, requests(index))
        let (own, known) = (load * best.weight, best.requests * weights[index])
        if least.isEmpty || own < known {
            least = ServerMask(only: index)
            best = (load, weights[index])
        } else if own == known {
            least.insert(index)
        }
    }
    return least
}

/// Rendezvous hashing with weights: each server draws a number for a value, and the highest one
/// wins. If a server leaves, only its values move; if one comes, it takes its share and nothing
/// else moves. All workers and processes agree.
///
/// - Parameters:
///   - value: the hash of the value.
///   - candidates: not empty.
///   - seeds: of all servers, from what they are, not from where they are in the list.
func rendezvous(
    _ value: UInt64, of candidates: ServerMask, weights: [Int], seeds: [UInt64]
) -> Int {
    var chosen = candidates.first
    var best = -Double.infinity
    for index in candidates {
        // Uniform between 0 and 1, and neither of them.
        let drawn = (Double(mixed(value ^ seeds[index]) >> 11) + 0.5) * 0x1p-53
        let score = -Double(weights[index]) / naturalLogarithm(drawn)
        if score > best { (best, chosen) = (score, index) }
    }
    return chosen
}

/// The natural logarithm of a number above 0, to some nine digits, the same on every machine.
func naturalLogarithm(_ number: Double) -> Double {
    // ln m = 2 artanh ((m - 1) / (m + 1)), of the significand, between 1 and 2.
    let m = number.significand
    let t = (m - 1) / (m + 1)
    let square = t * t
    var power = t
    var sum = 0.0
    for divisor in stride(from: 1.0, through: 17.0, by: 2.0) {
        sum += power / divisor
        power *= square
    }
    return 2 * sum + Double(number.exponent) * 0.693_147_180_559_945_3
}

/// Mixes the bits of a number so that every one of them depends on all (SplitMix64).
func mixed(_ number: UInt64) -> UInt64 {
    var z = number &+ 0x9E37_79B9_7F4A_7C15
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
}

/// The growing weight of a server that has come back or is new: in proportion to the time since
/// then, at least a tenth. Weights are in thousandths.
struct SlowStart: Equatable {
    /// How long it takes, in milliseconds; 0: no time.
    var milliseconds: Int64

    /// - Parameters:
    ///   - weight: as configured.
    ///   - since: when it came, in milliseconds; 0 if it did not come lately.
    func weight(_ weight: Int, since: Int64, at now: Int64) -> Int {
        guard milliseconds > 0, since != 0 else { return weight * 1000 }
        let elapsed = max(0, now - since)
        guard elapsed < milliseconds else { return weight * 1000 }
        return max(1, weight * Int(max(100, elapsed * 1000 / milliseconds)))
    }
}
