import Clocks
import Locking
import PinfoldConfiguration

/// The policy that is in force, for all who read the configuration: every reading of the local
/// files is one with the policy. Changed by the main thread only.
final class PolicyHolder: Sendable {
    struct State {
        /// The one that is in force; `nil` if none is.
        var document: PolicyDocument?
        /// The last one that was verified and taken, by this process or one before it: none with a
        /// lower serial is taken.
        var known: PolicyEnvelope?
        var standing = PolicyStanding()
        /// What the configuration is made of without it; `nil` if it was not read from a document.
        var local: LocalConfiguration?
        /// The one whose content was refused last; `nil` if none was.
        var refusedContent: RefusedContent?
    }

    private let state = Locked(State())

    var standing: PolicyStanding { state.withLock { $0.standing } }
    var known: PolicyEnvelope? { state.withLock { $0.known } }
    var document: PolicyDocument? { state.withLock { $0.document } }

    var local: LocalConfiguration? {
        get { state.withLock { $0.local } }
        set { state.withLock { $0.local = newValue } }
    }

    var refusedContent: RefusedContent? {
        get { state.withLock { $0.refusedContent } }
        set { state.withLock { $0.refusedContent = newValue } }
    }

    func withStanding<Result: Sendable>(
        _ body: (inout PolicyStanding) -> Result
    ) -> Result {
        state.withLock { body(&$0.standing) }
    }

    /// A configuration that has been read from its files, with the policy in force; where none is,
    /// with the one that is stored, if that can be used.
    func completed(
        _ loaded: LoadedConfiguration
    ) throws(ConfigurationErrors) -> LoadedConfiguration {
        guard let settings = loaded.snapshot.policy else { return loaded }
        if let document { return try ConfigurationLoader.adding(document, to: loaded) }
        let path = loaded.snapshot.cache.policyFile
        guard let (document, _) = PolicyStore.read(path, keys: settings.publicKeys),
            let completed = try? ConfigurationLoader.adding(document, to: loaded)
        else { return loaded }
        return completed
    }

    /// The same at the start, where it is said why a stored policy cannot be used: the gateway then
    /// starts without, and waits for another.
    func started(_ loaded: LoadedConfiguration) -> (LoadedConfiguration, problem: String?) {
        guard let settings = loaded.snapshot.policy,
            let (document, _) = PolicyStore.read(
                loaded.snapshot.cache.policyFile, keys: settings.publicKeys)
        else { return (loaded, nil) }
        do throws(ConfigurationErrors) {
            return (try ConfigurationLoader.adding(document, to: loaded), nil)
        } catch {
            let problem = error.errors.first?.description ?? ""
            _ = withStanding { $0.refuse(.content(problem), at: Clock.wallMilliseconds()) }
            return (loaded, problem)
        }
    }

    /// A configuration is in force.
    /// - Parameter document: the policy that is in it, if it is another than before.
    func adopt(_ configuration: ConfigurationSnapshot, _ document: PolicyDocument?, at now: Int64) {
        var known: PolicyEnvelope?
        if let settings = configuration.policy {
            let bytes = document?.bytes
            known =
                bytes.flatMap { try? PolicyEnvelope($0) }
                ?? PolicyStore.read(
                    configuration.cache.policyFile, keys: settings.publicKeys)?.envelope
        }
        state.withLock { state in
            state.standing.adopt(configuration, at: now)
            if configuration.policyInForce == nil { state.document = nil }
            if let document { state.document = document }
            guard let settings = configuration.policy else {
                state.known = nil
                return
            }
            if let former = state.known, (try? former.signers(among: settings.publicKeys)) != nil,
                former.serial > known?.serial ?? 0
            {
                known = former
            }
            state.known = known
        }
    }
}
