import Gateway
import HTTPCore
import PinfoldEngine
import PinfoldTLS
import Trust

/// Verifies certificates with the same code as live connections. Trust anchors and certificates
/// that several queries share are read only once.
package struct TrustChecker {
    /// The number of cached entries of one kind. When it is exceeded, all are dropped.
    private static let remembered = 4096

    private var chains: [TrustQuery.Material: Result<PresentedChain, MaterialError>] = [:]
    private var certificates: [Encoding: PresentedChain] = [:]
    private var anchors: [[TrustQuery.Material]: TrustRoots] = [:]

    /// A certificate's bytes, hashed in one call: an array of bytes would hash them one by one.
    private struct Encoding: Hashable {
        let bytes: [UInt8]

        func hash(into hasher: inout Hasher) {
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    /// Why material is no chain.
    private enum MaterialError: Error {
        case query(TrustQueryError)
        case chain(ChainError)
    }

    package init() {}

    /// Checks a server's certificates as a query asks.
    ///
    /// - Throws: If a file cannot be read, or is not a certificate or a pin. A malformed
    ///   certificate in the server's chain is not an error: the verdict is `fail`.
    package mutating func check(
        _ query: TrustQuery
    ) throws(TrustQueryError) -> TrustResult {
        let roots = try roots(query.roots)
        let verifier: TrustVerifier
        do throws(TLSContextError) {
            let lists = query.revocationLists
            verifier = try TrustVerifier(
                PinningPolicy(pinsets: query.pinsets), roots: roots, profile: query.profile,
                revocation: lists.isEmpty ? nil : try RevocationLists(der: lists),
                requiresStaple: query.requiresStaple, transparency: query.transparency)
        } catch {
            throw TrustQueryError("\(error)")
        }
        do throws(MaterialError) {
            let chain = try presented(query)
            if query.bypassesPins { return Self.pinnedPortRefused }
            switch verifier.verify(
                chain, host: query.host, at: query.time, staple: query.staple,
                timestamps: ServerTimestamps(status: query.staple))
            {
            case .trusted(let facts): return Self.pass(facts)
            case .refused(let failure): return Self.fail(failure)
            }
        } catch {
            switch error {
            case .query(let problem): throw problem
            case .chain(let failure): return Self.fail(TrustError(.chain(failure)))
            }
        }
    }

    private static func pass(_ facts: TrustFacts) -> TrustResult {
        let end = facts.expires.map { CivilDate.text(secondsSince1970: $0) }
        var detail =
            end.map { "trusted until \($0)" }
            ?? "the policy does not require a valid chain, and is satisfied"
        for case .reported(let failure) in facts.outcomes {
            detail += "; \(failure), which is only reported"
        }
        return TrustResult(.pass, VerdictReason.trusted.entry.token, detail)
    }

    private static func fail(_ failure: TrustError) -> TrustResult {
        var failure = failure
        if failure.pinset == "" { failure.pinset = nil }
        return TrustResult(.fail, Reason(failure).token, failure.description)
    }

    private static var pinnedPortRefused: TrustResult {
        let fault = ExchangeError.access(.pinnedPortRefused)
        return TrustResult(.fail, fault.reason.token, fault.explanation)
    }

    // MARK: The server's chain

    private mutating func presented(
        _ query: TrustQuery
    ) throws(MaterialError) -> PresentedChain {
        var whole: PresentedChain?
        for material in query.chain + query.intermediates {
            let part = try chain(material)
            guard let before = whole else {
                whole = part
                continue
            }
            guard let both = before.adding(part) else {
                throw .query(TrustQueryError("out of memory"))
            }
            whole = both
        }
        guard let whole, !query.chain.isEmpty else { throw .chain(.noCertificate) }
        return whole
    }

    private mutating func chain(
        _ material: TrustQuery.Material
    ) throws(MaterialError) -> PresentedChain {
        if let known = chains[material] { return try known.get() }
        let made: Result<PresentedChain, MaterialError>
        do throws(MaterialError) {
            made = .success(try read(chain: material))
        } catch {
            made = .failure(error)
        }
        if chains.count >= Self.remembered { chains.removeAll(keepingCapacity: true) }
        chains[material] = made
        return try made.get()
    }

    private mutating func read(
        chain material: TrustQuery.Material
    ) throws(MaterialError) -> PresentedChain {
        let certificates: [[UInt8]]
        do throws(TrustQueryError) {
            certificates = try Self.presentedDER(material)
        } catch {
            throw .query(error)
        }
        var whole: PresentedChain?
        for (index, der) in certificates.enumerated() {
            guard let one = parsed(der) else { throw .chain(.malformed(position: index + 1)) }
            whole = whole?.adding(one) ?? one
        }
        guard let whole else { throw .chain(.noCertificate) }
        return whole
    }

    /// Parses one certificate. The result is `nil` if it is malformed.
    private mutating func parsed(_ der: [UInt8]) -> PresentedChain? {
        let encoding = Encoding(bytes: der)
        if let known = certificates[encoding] { return known }
        guard let made = try? PresentedChain(der: [der]) else { return nil }
        if certificates.count >= Self.remembered { certificates.removeAll(keepingCapacity: true) }
        certificates[encoding] = made
        return made
    }

    /// The parts of the material that should be certificates, valid or not.
    private static func presentedDER(
        _ material: TrustQuery.Material
    ) throws(TrustQueryError) -> [[UInt8]] {
        if case .loaded(_, let certificates) = material { return certificates }
        let (name, contents) = try contents(material)
        do throws(PinError) {
            return try Pin.decodePresented(file: contents)
        } catch {
            throw TrustQueryError("\(name): \(error.problem)")
        }
    }

    private static func contents(
        _ material: TrustQuery.Material
    ) throws(TrustQueryError) -> (name: String, contents: [UInt8]) {
        switch material {
        case .text(let text): return ("the PEM text", Array(text.utf8))
        case .file(let path):
            do throws(CommandFiles.ReadError) {
                return (path, try CommandFiles.read(path))
            } catch {
                throw TrustQueryError(error.description)
            }
        case .system, .loaded:
            throw TrustQueryError("`system` names trust anchors and cannot be used here")
        }
    }

    // MARK: Trust anchors

    private mutating func roots(
        _ materials: [TrustQuery.Material]
    ) throws(TrustQueryError) -> TrustRoots {
        if let known = anchors[materials] { return known }
        var sources: [RootSource] = []
        for material in materials {
            switch material {
            case .system: sources.append(.system)
            case .loaded(let name, let certificates):
                sources += certificates.map { .file(name: name, contents: $0) }
            case .text, .file:
                let (name, contents) = try Self.contents(material)
                sources.append(.file(name: name, contents: contents))
            }
        }
        let made: TrustRoots
        do throws(TLSContextError) {
            made = try TrustRoots(sources)
        } catch {
            throw TrustQueryError("\(error)")
        }
        if anchors.count >= Self.remembered { anchors.removeAll(keepingCapacity: true) }
        anchors[materials] = made
        return made
    }
}

extension TrustQuery {
    /// Reads a pin in the notation of a configuration's `pins`, or PEM text.
    package static func pins(_ text: String) throws(TrustQueryError) -> [Pin] {
        var contents = Array(text.utf8)
        if !text.contains("-----BEGIN ") {
            switch try reading({ () throws(PinError) in try Pin.parse(text) }) {
            case .literal(let pins): return pins
            case .file(let path):
                do throws(CommandFiles.ReadError) {
                    contents = try CommandFiles.read(path)
                } catch {
                    throw TrustQueryError("pin \(error)")
                }
            }
        }
        return try reading { () throws(PinError) in try Pin.decode(file: contents) }
    }

    private static func reading<Value>(
        _ read: () throws(PinError) -> Value
    ) throws(TrustQueryError) -> Value {
        do throws(PinError) {
            return try read()
        } catch {
            throw TrustQueryError("invalid pin: \(error.problem)")
        }
    }
}
