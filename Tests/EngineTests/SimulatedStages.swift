import EventLoop
import HTTPCore
import TestSupport

@testable import Engine

/// What the stages of a simulated message do with its content.
enum SimulatedStaging {
    /// As it is.
    case pass
    /// Kept to the end, and the head with it.
    case hold
    /// A byte more at the end, and so without a length.
    case append
    /// Refused behind so many bytes, or at the end.
    case refuse(behind: Int, holdsHead: Bool)

    static let appended: UInt8 = 0x23

    var isAppending: Bool { if case .append = self { true } else { false } }

    init(_ random: inout SeededRandom) {
        switch random.below(8) {
        case 0..<2: self = .pass
        case 2..<4: self = .hold
        case 4..<7: self = .append
        default: self = .refuse(behind: random.below(1500), holdsHead: random.chance(50))
        }
    }
}

/// A stage of a message of the simulation.
final class SimulatedStage: BodyStage {
    private let staging: SimulatedStaging
    private let buffers: BufferPool
    private var kept: [UInt8] = []
    private var taken = 0

    init(_ staging: SimulatedStaging, _ buffers: BufferPool) {
        self.staging = staging
        self.buffers = buffers
    }

    var changesLength: Bool { staging.isAppending }

    var holdsHead: Bool {
        switch staging {
        case .pass, .append: false
        case .hold: true
        case .refuse(_, let holdsHead): holdsHead
        }
    }

    func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to next: BodyOutlet
    ) throws(ExchangeFault) {
        taken += content.count
        switch staging {
        case .pass, .append: try next(content, owner)
        case .hold: kept.append(contentsOf: content)
        case .refuse(let bound, let holdsHead):
            if taken > bound { throw .misdirected }
            if !holdsHead { try next(content, owner) }
        }
    }

    func finish(to next: BodyOutlet) throws(ExchangeFault) {
        switch staging {
        case .pass: break
        case .hold: if !kept.isEmpty { try give(kept, next) }
        case .append: try give([SimulatedStaging.appended], next)
        case .refuse: throw .misdirected
        }
    }

    private func give(_ bytes: [UInt8], _ next: BodyOutlet) throws(ExchangeFault) {
        let buffer = buffers.take(bytes: bytes.count)
        buffer.writable.copyBytes(from: bytes)
        buffer.end = bytes.count
        try next(buffer.readable, buffer)
    }
}

/// Chooses stages for the messages of a world, and notes with the request what it chose last.
final class SimulatedStages: BodyStages {
    private unowned let world: SimulatedWorld

    init(_ world: SimulatedWorld) { self.world = world }

    func requestStages(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, to origin: Origin
    ) -> [any BodyStage] {
        let staging = choose()
        named(by: bytes)?.requestStaging = staging
        return stages(staging)
    }

    func responseStages(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, of response: StagedResponse,
        from origin: Origin
    ) -> [any BodyStage] {
        let staging = choose()
        named(by: bytes)?.responseStaging = staging
        return stages(staging)
    }

    private func choose() -> SimulatedStaging? {
        world.random.chance(40) ? SimulatedStaging(&world.random) : nil
    }

    private func stages(_ staging: SimulatedStaging?) -> [any BodyStage] {
        staging.map { [SimulatedStage($0, world.loop.buffers)] } ?? []
    }

    private func named(by bytes: Span<UInt8>) -> SimulatedRequest? {
        bytes.withUnsafeBytes { head in
            ReceivedHead.value("\r\nx-request: ", in: head)
                .flatMap { ReceivedHead.number(in: head, at: $0) }
                .flatMap { world.request(numbered: $0) }
        }
    }
}
