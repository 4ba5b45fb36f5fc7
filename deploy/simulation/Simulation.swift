/// How the gateways have to do with each other.
enum Way: String, CaseIterable {
    case separate = "separate"
    case noLease = "no lease"
    case ownStale = "own stale"
    case shared = "shared"
}

/// What came of the requests that were counted.
struct Counts {
    var requests = 0
    var ownHits = 0
    var sharedHits = 0
    /// Requests that waited for a response under way: at the gateway, or at another.
    var waited = 0
    var fetches = 0
    var confirmations = 0
    var originBytes = 0.0
    // Of the engine.
    var lookups = 0
    var stores = 0
    var chunksRead = 0
    var chunksWritten = 0
    var leases = 0
    var bytesRead = 0.0
    var bytesWritten = 0.0

    var originRequests: Int { fetches + confirmations }
}

/// A fleet and its origin.
struct Simulation {
    /// Kept after it is stale, in milliseconds: `SharedLevelOptions.graceSeconds`.
    static let grace: Int32 = 3_600_000
    /// What is stored with a body: the record, its head and key, and the engine's own overhead.
    static let recordBytes = 700.0
    static let engineBytes = 250.0
    /// What is asked and answered besides the record and the body.
    static let commandBytes = 150.0
    /// Larger bodies are in chunks of this size (`SharedLevelOptions.inlineBodyBytes`).
    static let chunkBytes: Int32 = 65_536
    static let absent = Int32.min

    let objects: Objects
    let options: Options
    let way: Way
    let gateways: Int
    var tiers: [OwnTier]
    /// Since when the engine has each object, or will have, as a lease says.
    let stored: UnsafeMutablePointer<Int32>
    var random = Random(state: 2)
    var counts = Counts()

    init(_ objects: Objects, _ options: Options, _ way: Way, gateways: Int) {
        self.objects = objects
        self.options = options
        self.way = way
        self.gateways = gateways
        tiers = (0..<gateways).map { _ in OwnTier(objects, bytes: options.ownBytes) }
        stored = .allocate(capacity: objects.count)
        stored.initialize(repeating: Self.absent, count: objects.count)
        if way != .separate { fillEngine() }
    }

    func end() {
        for tier in tiers { tier.index.deallocate() }
        stored.deallocate()
    }

    /// What the engine has after days: an object that is asked for with the rate r and fresh for the
    /// time T is obtained again every T + 1/r, if it is not kept for less.
    private mutating func fillEngine() {
        for object in 0..<objects.count {
            let rate = objects.probabilities[object] * options.rate * Double(gateways) / 1000
            let life = Double(objects.lifetimes[object])
            let cycle = life + 1 / rate
            let place = random.unit() * cycle
            guard place < life + Double(Self.grace) else { continue }
            stored[object] = -Int32(place)
        }
    }

    mutating func run() {
        let perMillisecond = options.rate * Double(gateways) / 1000
        var due = 0.0
        for now in 0..<Int32((options.warmUp + options.seconds) * 1000) {
            if now == Int32(options.warmUp * 1000) { counts = Counts() }
            due += perMillisecond
            while due >= 1 {
                due -= 1
                let bits = random.next()
                let gateway = Int(((random.next() >> 32) &* UInt64(gateways)) >> 32)
                ask(objects.choose(bits), gateway, now)
            }
        }
    }

    private mutating func ask(_ object: Int, _ gateway: Int, _ now: Int32) {
        counts.requests += 1
        let slot = tiers[gateway].find(object)
        let life = objects.lifetimes[object]
        guard slot >= 0 else {
            let fetched = obtain(object, now, hasStale: false)
            return tiers[gateway].insert(object, fetched: fetched)
        }
        let fetched = tiers[gateway].slots[Int(slot)].fetched
        tiers[gateway].use(slot)
        if fetched > now {
            counts.waited += 1
        } else if now - fetched < life {
            counts.ownHits += 1
        } else {
            tiers[gateway].slots[Int(slot)].fetched = obtain(object, now, hasStale: true)
        }
    }

    /// Gets what a gateway does not have, or has in a stale form; returns since when it ages.
    private mutating func obtain(_ object: Int, _ now: Int32, hasStale: Bool) -> Int32 {
        let ready = now + options.latency
        let asksEngine = way != .separate && !(way == .ownStale && hasStale)
        var hasStale = hasStale
        if asksEngine {
            counts.lookups += 1
            counts.bytesRead += Self.commandBytes
            let since = stored[object]
            if since != Self.absent, now - since < objects.lifetimes[object] + Self.grace {
                if since > now {
                    // Another gateway is fetching it.
                    guard way == .noLease else {
                        counts.waited += 1
                        countRead(object)
                        return since
                    }
                } else {
                    countRead(object)
                    if now - since < objects.lifetimes[object] {
                        counts.sharedHits += 1
                        return since
                    }
                    hasStale = true
                }
            }
            if way != .noLease { counts.leases += 1 }
        }
        if hasStale { counts.confirmations += 1 } else { counts.fetches += 1 }
        let isUnchanged = hasStale && random.next() % 10 != 0
        counts.originBytes += isUnchanged ? 300 : Double(objects.sizes[object])
        guard way != .separate else {
            return now < Int32(options.warmUp * 1000) && !hasStale
                ? agedAtBeginning(object, now) ?? ready : ready
        }
        stored[object] = ready
        counts.stores += 1
        // After a 304, the record and an inline body are written anew, and chunks stay.
        let size = objects.sizes[object]
        let chunks = size > Self.chunkBytes ? (size + Self.chunkBytes - 1) / Self.chunkBytes : 0
        counts.bytesWritten += Self.recordBytes + Self.commandBytes
        if chunks == 0 || !isUnchanged { counts.bytesWritten += Double(size) }
        if !isUnchanged { counts.chunksWritten += Int(chunks) }
        return ready
    }

    /// Since when a gateway would have had an object that it is first asked for now, had it begun
    /// days ago; `nil` if it would have fetched it now. An hour or a day does not come to its end
    /// within what is simulated.
    private mutating func agedAtBeginning(_ object: Int, _ now: Int32) -> Int32? {
        let life = Double(objects.lifetimes[object])
        let requests = objects.probabilities[object] * options.rate / 1000 * life
        guard random.unit() < requests / (1 + requests) else { return nil }
        let left = Int32(random.unit() * life)
        return left > now ? left - objects.lifetimes[object] : nil
    }

    private mutating func countRead(_ object: Int) {
        let size = objects.sizes[object]
        counts.bytesRead += Self.recordBytes + Double(size)
        if size > Self.chunkBytes {
            counts.chunksRead += Int((size + Self.chunkBytes - 1) / Self.chunkBytes)
        }
    }

    /// Bytes of what the engine has at the end.
    var engineBytes: Double {
        let now = Int32((options.warmUp + options.seconds) * 1000)
        return (0..<objects.count).reduce(0.0) { sum, object in
            let since = stored[object]
            guard since != Self.absent, now - since < objects.lifetimes[object] + Self.grace else {
                return sum
            }
            return sum + Double(objects.sizes[object]) + Self.recordBytes + Self.engineBytes
        }
    }
}
