import PinfoldClient

/// What a call does: it follows from its number and the seed alone.
struct Plan {
    let number: Int
    let fault: Fault
    let role: Role
    /// Which of the server's processes it asks.
    let server: Int
    let session: SessionName
    let way: Way
    let size: Int
    let upload: Upload?
    let uploadSize: Int
    let cancellation: Cancellation?
    /// For how many milliseconds it is suspended, and when, or `nil` if it is not.
    let pause: (after: Int, milliseconds: Int)?
    /// The number in the path, from which the content of the response follows.
    let path: Int
    let name: String

    /// How and when a call is cancelled.
    struct Cancellation {
        /// By the Swift task, or by the progress.
        let byTask: Bool
        /// After so many microseconds, or at once.
        let after: Int?
    }

    /// - Parameter only: The only fault, or `nil` for all.
    init(number: Int, seed: UInt64, servers: Int, only: String? = nil) {
        var generator = Generator(seed: seed, call: number)
        self.number = number
        let wheel = only == nil ? Fault.wheel : Fault.wheel.filter { Fault.all[$0].name == only }
        fault = Fault.all[wheel[Int.random(in: 0..<wheel.count, using: &generator)]]
        role = fault.roles.randomElement(using: &generator) ?? .plain
        session = fault.sessions.randomElement(using: &generator) ?? .direct
        // Tokens are good for the process that has made them.
        let first = [.token, .failing].contains(session)
        server = first ? 0 : Int.random(in: 0..<servers, using: &generator)
        let ways = fault.ways.flatMap { way in
            // Files take longest, and are less of a client than the rest.
            Array(repeating: way, count: way == .file ? 1 : 6)
        }
        way = ways.randomElement(using: &generator) ?? .data
        // Most are small.
        let (low, high) = (fault.sizes.lowerBound, fault.sizes.upperBound)
        let most = generator.happens(75) ? low + (high - low) / 10 : high
        size = Int.random(in: low...most, using: &generator)
        upload = fault.uploads.randomElement(using: &generator)
        uploadSize = Int.random(in: fault.uploadSizes, using: &generator)
        cancellation =
            generator.happens(12)
            ? Cancellation(
                byTask: generator.happens(50),
                after: generator.happens(15)
                    ? nil
                    : Int.random(in: 0...8, using: &generator)
                        << Int.random(
                            in: 0...11, using: &generator))
            : nil
        pause =
            generator.happens(4)
            ? (Int.random(in: 0...3, using: &generator), Int.random(in: 1...10, using: &generator))
            : nil
        path = fault.paths > 0 ? number % fault.paths : number
        name = generator.happens(10) && !Plan.needsAddress(role) ? "localhost" : "127.0.0.1"
    }

    /// The certificate of these is for another name already.
    private static func needsAddress(_ role: Role) -> Bool { role == .misnamed }

    /// The ends that are right.
    var expected: Set<Kind> {
        var kinds = fault.kinds
        if way == .part || way == .unread, kinds.contains(.right) || fault.isLate {
            kinds.insert(.left)
        }
        if case .file = way {
            // Only with an accepted status is there a file.
            for case .status in kinds { kinds.insert(.failed(.unacceptableStatus)) }
        }
        if cancellation != nil { kinds.insert(.cancelled) }
        if session == .brief { kinds.insert(.invalidated) }
        return kinds
    }

    /// What reports say of it.
    var text: String {
        var text = "call \(number): \(fault.name) of \(role), session \(session), way \(way)"
        if let upload { text += ", upload of \(uploadSize) bytes by \(upload)" }
        if let cancellation {
            text += ", cancelled by the \(cancellation.byTask ? "task" : "progress")"
            text += cancellation.after.map { " after \($0) µs" } ?? " at once"
        }
        if let pause {
            text += ", suspended after \(pause.after) ms for \(pause.milliseconds) ms"
        }
        return text
    }
}
