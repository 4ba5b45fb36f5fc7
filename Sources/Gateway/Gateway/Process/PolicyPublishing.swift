import AccessPolicy
import Clocks
import PinfoldConfiguration

/// What a policy is verified by before this gateway publishes it: what it would take itself.
struct PolicyPublishing: Sendable {
    /// Why a policy is not published.
    enum RefusalReason: Error, Sendable, Equatable {
        /// This gateway takes none by way of the engine.
        case notConfigured
        /// There is none to be published.
        case nothing
        case policy(PolicyRefusalReason)

        var text: String {
            switch self {
            case .notConfigured:
                "the gateway takes no policy by way of the engine; expected policy.engine: true "
                    + "in its configuration"
            case .nothing: "no policy has been published yet; expected one"
            case .policy(let reason): reason.text
            }
        }
    }

    let policies: PolicyHolder
    /// Those that were in force before.
    let archive: PolicyArchive
    /// The lists of domains in force.
    let lists: @Sendable () -> [AccessList]

    /// The newest policy that is known here and is signed by one of the keys: the one that came by
    /// way of the engine last, or the one in force.
    func newest(offered: [UInt8]?) -> PolicyEnvelope? {
        guard let settings = policies.standing.settings else { return nil }
        let candidates = [offered, policies.document?.bytes].compactMap { bytes in
            bytes.flatMap { try? PolicyEnvelope($0) }
        }
        return candidates.filter { (try? $0.signers(among: settings.publicKeys)) != nil }
            .max { $0.serial < $1.serial }
    }

    /// A policy that is known here, by its serial.
    func policy(_ serial: Int64, offered: [UInt8]?) -> PolicyEnvelope? {
        if let newest = newest(offered: offered), newest.serial == serial { return newest }
        if let inForce = policies.known, inForce.serial == serial { return inForce }
        return archive.policy(serial, keys: policies.standing.settings?.publicKeys ?? [])
    }

    /// The serials of all that are known here, the highest first.
    func serials(offered: [UInt8]?) -> [Int64] {
        var serials = Set(archive.serials)
        if let newest = newest(offered: offered) { serials.insert(newest.serial) }
        if let inForce = policies.known { serials.insert(inForce.serial) }
        return serials.sorted(by: >)
    }

    /// Verifies a policy as one that has arrived, and reads all of it: what this gateway would not
    /// take is not offered to others. That can take a while.
    /// - Parameters:
    ///   - bytes: `nil` for the newest one that is known.
    ///   - offered: what came by way of the engine last.
    func verified(
        _ bytes: [UInt8]?, offered: [UInt8]?
    ) throws(RefusalReason) -> PolicyEnvelope {
        guard let settings = policies.standing.settings, settings.isFromEngine else {
            throw .notConfigured
        }
        let newest = newest(offered: offered)
        guard let bytes = bytes ?? newest?.bytes else { throw .nothing }
        let known = [policies.known, newest].compactMap { $0 }.max { $0.serial < $1.serial }
        let now = Clock.wallSeconds()
        let decision = PolicyDecision.of(
            bytes, after: known, keys: settings.publicKeys, now: now)
        if case .refuse(let reason) = decision { throw .policy(reason) }
        let envelope: PolicyEnvelope
        do throws(PolicyFormatError) { envelope = try PolicyEnvelope(bytes) } catch {
            throw .policy(.format(error))
        }
        guard now < envelope.expires else {
            throw .policy(.expired(serial: envelope.serial, at: envelope.expires))
        }
        guard let local = policies.local else { return envelope }
        do throws(ConfigurationErrors) {
            _ = try ConfigurationLoader.adding(
                PolicyDocument(name: "policy", bytes: bytes), toAnew: local, lists: lists(),
                now: now)
        } catch {
            throw .policy(.content(error.errors.first?.description ?? ""))
        }
        return envelope
    }
}
