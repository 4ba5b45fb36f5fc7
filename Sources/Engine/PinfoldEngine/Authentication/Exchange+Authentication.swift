import Authentication
import EventLoop
import HTTPCore
import PinfoldMetrics

// Phase 1 where the listener wants to know who is asking: the client's certificate proves it, or
// the request has to, in Proxy-Authorization on a forward listener, in Authorization on a reverse
// one.
//
//     routing ── a certificate, a token, or a known password ──► routing goes on
//        └── a password ──► authenticating ── checked ──► routing goes on, or a reply
extension Exchange {
    /// Who is asking; `nil` where the listener asks nobody. In an intercepted tunnel it is who
    /// asked for the tunnel.
    package var identity: Identity? { caller.identity ?? ingress?.identity }

    /// Whether the request proves who is asking. If not, it has been answered, or waits for a
    /// password check, after which it is routed.
    @inline(never)
    func provesWhoAsks(at ingress: Ingress) -> Bool {
        if let identity = ingress.identity { return isStill(identity) }
        let isProxy = ingress.role == .forward || ingress.role == .proof
        // No proxy request, and refused as such.
        if isProxy, request.form == .origin { return true }
        caller.isAsked(by: isProxy ? .proxy : .origin)
        let field: FieldID = isProxy ? .proxyAuthorization : .authorization
        guard let store = environment.policy.credentials else {
            reply(with: .gateway(.superseded), closing: true)
            return false
        }
        if let identity = ingress.certifiedIdentity(in: store, at: environment.wallSeconds) {
            metrics.add(.authenticationsAccepted)
            prove(identity)
            return true
        }
        guard request.fields.contains(field) else {
            return refuse(ingress.methods == .certificate ? .certificateUnknown : .required)
        }
        // RFC 9110 §11.6.2: one field. Which of two counts must not be a matter of taste.
        guard let line = request.fields.only(field) else { return refuse(.credentialsRepeated) }
        let evaluation = withRequestHead { bytes in
            evaluate(bytes.extracting(line.value.indices), ingress.methods, store)
        }
        switch evaluation {
        case .known(let identity, let isRemembered):
            metrics.add(isRemembered ? .authenticationsRemembered : .authenticationsAccepted)
            prove(identity)
            return true
        case .refused(let reason): return refuse(reason)
        case .check(let check):
            wait(for: check)
            return false
        }
    }

    /// Whether who proved to be this when the connection began could still do so.
    private func isStill(_ identity: Identity) -> Bool {
        if environment.policy.confirms(identity, at: environment.wallSeconds) { return true }
        endTunnel()
        return false
    }

    /// What the value of the field proves.
    private enum Evaluation {
        case known(Identity, isRemembered: Bool)
        case refused(AuthenticationReason)
        case check(PasswordCheck)
    }

    private func evaluate(
        _ value: Span<UInt8>, _ methods: AuthenticationMethods, _ store: CredentialStore
    ) -> Evaluation {
        guard let method = WrittenProof.method(of: value), methods.contains(method) else {
            return .refused(.credentialsUnusable)
        }
        let now = environment.loop.monotonicNow
        // A token that a file lists costs no more to look up than to remember.
        let isCostly = method == .basic || store.signedTokens != nil
        let hash = isCostly ? environment.recentProofs.hash(of: value) : (0, 0)
        if isCostly,
            let known = environment.recentProofs.identity(by: hash, in: store, at: now),
            known.isValid(at: environment.wallSeconds)
        {
            return .known(known, isRemembered: true)
        }
        guard let written = WrittenProof(value) else {
            return .refused(.credentialsUnusable)
        }
        caller.offers(written.method)
        let token = value.extracting(written.token)
        switch written {
        case .bearer:
            if let authority = store.signedTokens, SignedTokenAuthority.mayBeMeant(by: token),
                let evaluation = evaluate(signed: token, of: value, authority, store)
            {
                if case .known(let identity, _) = evaluation {
                    environment.recentProofs.keep(identity, by: hash, in: store, at: now)
                }
                return evaluation
            }
            let digest = ProofDigest(of: token)
            switch store.identity(ofToken: digest, at: environment.wallSeconds) {
            case .accepted(let identity): return .known(identity, isRemembered: false)
            case .expired: return .refused(.credentialsExpired)
            case .unknown: return .refused(.credentialsWrong)
            }
        case .basic:
            let digest = environment.shared.proofKey.digest(of: value)
            let known = environment.shared.verified.withLock {
                $0.identity(by: digest, in: store, at: now, wall: environment.wallSeconds)
            }
            if let known {
                environment.recentProofs.keep(known, by: hash, in: store, at: now)
                return .known(known, isRemembered: true)
            }
            return evaluate(UserPassword(token: token), digest, store)
        }
    }

    private func evaluate(
        _ credentials: UserPassword?, _ digest: ProofDigest, _ store: CredentialStore
    ) -> Evaluation {
        guard let credentials else { return .refused(.credentialsUnusable) }
        let hash = store.users?.hash(of: credentials.user)
        // Without any user there is none whose existence could show in the time.
        guard let client = clientNetwork, let compared = hash ?? store.users?.decoy else {
            return .refused(.credentialsWrong)
        }
        return .check(
            PasswordCheck(
                proof: digest, client: client, credentials, hash: compared, isDecoy: hash == nil))
    }

    // MARK: Signed tokens

    /// Evaluates a signed token. Its signature is verified here, on the loop: that costs less than
    /// to hand it to another thread would save, and a network whose signatures are wrong gets no
    /// others verified for a while.
    /// - Parameter value: the whole value of the field.
    /// - Returns: `nil` if the token is none of these.
    @inline(never)
    private func evaluate(
        signed token: Span<UInt8>, of value: Span<UInt8>, _ authority: SignedTokenAuthority,
        _ store: CredentialStore
    ) -> Evaluation? {
        let digest = environment.shared.proofKey.digest(of: value)
        let (now, wall) = (environment.loop.monotonicNow, environment.wallSeconds)
        let known = environment.shared.verified.withLock {
            $0.identity(by: digest, in: store, at: now, wall: wall)
        }
        if let known { return .known(known, isRemembered: true) }
        guard SignedTokenAuthority.isMeant(by: token) else { return nil }
        guard let client = clientNetwork else { return .refused(.credentialsWrong) }
        do throws(SignedTokenError) {
            let candidate = try authority.read(token, at: wall)
            let pause = environment.shared.signatureFailures.withLock {
                $0.pause(client, Self.anyone, at: now)
            }
            guard pause == 0 else {
                caller.mayTryAgain(afterMilliseconds: pause)
                return .refused(.busy)
            }
            let identity = try candidate.verified()
            environment.shared.verified.withLock {
                $0.remember(digest, identity, in: store, from: client, at: now)
            }
            return .known(identity, isRemembered: false)
        } catch {
            if error == .signature {
                environment.shared.signatureFailures.withLock {
                    $0.failed(client, Self.anyone, at: now)
                }
            }
            debug("token refused", ["because": "\(error.text)"])
            return .refused(error.reason)
        }
    }

    /// Wrong signatures count for the network alone: whom such a token names is anybody's choice.
    private static var anyone: String { "" }

    // MARK: Waiting for a password check

    private func wait(for check: PasswordCheck) {
        guard let passwords = environment.shared.passwords, register() else {
            refuse(.busy)
            return
        }
        guard goesOn(after: .decided(.authenticate)) else { return }
        let (token, mailbox) = (token, environment.mailbox)
        let submission = passwords.submit(check) { mailbox.post(.passwordChecked(token, $0)) }
        switch submission {
        case .accepted(let isDelayed, let cancel):
            if isDelayed { metrics.add(.authenticationsDelayed) }
            caller.wait(for: check, cancel: cancel)
        case .busy:
            if goesOn(after: .authenticated) { refuse(.busy) }
        case .refused(let milliseconds):
            caller.mayTryAgain(afterMilliseconds: milliseconds)
            if goesOn(after: .authenticated) { refuse(.busy) }
        }
    }

    /// Handles the result of a password check.
    func passwordChecked(_ outcome: CheckOutcome) {
        guard case .authenticating = state.step, let check = caller.takeCheck(), let ingress,
            goesOn(after: .authenticated)
        else { return }
        switch outcome {
        case .differs: refuse(.credentialsWrong)
        case .impossible:
            environment.shared.logger.error(
                "a password cannot be checked: no memory, or the system's library refuses its hash",
                metadata: ["id": "\(idText)", "listener": "\(ingress.name)"])
            refuse(.busy)
        case .matches:
            // The file may have been read again meanwhile.
            guard let store = environment.policy.credentials,
                let identity = store.identity(of: check.user, by: check.hash)
            else {
                refuse(.credentialsWrong)
                return
            }
            let now = environment.loop.monotonicNow
            environment.shared.verified.withLock {
                $0.remember(check.proof, identity, in: store, from: check.client, at: now)
            }
            metrics.add(.authenticationsAccepted)
            prove(identity)
            dispatch(at: ingress)
        }
    }

    /// The client has left while its password was waited for.
    func abandonCheck() { caller.cancelCheck() }

    private func prove(_ identity: Identity) {
        caller.proved(identity)
        debug("authenticated", ["method": "\(identity.method.rawValue)"])
    }

    // MARK: Refusals

    @discardableResult
    private func refuse(_ reason: AuthenticationReason) -> Bool {
        metrics.add(reason.counter)
        reply(
            with: .authentication(reason, caller.recipient),
            closing: reason == .credentialsRepeated)
        return false
    }

    /// Refuses a request in an intercepted tunnel, because who asked for the tunnel could not do so
    /// any more. In there nobody can be asked: the next CONNECT will be.
    func endTunnel() {
        metrics.add(.authenticationsEnded)
        reply(with: .authentication(.ended, .proxy), closing: true)
    }

    /// Whether the client may send another request after a refused CONNECT. Only after a challenge
    /// and if nothing has followed its head: whatever did is meant for the tunnel.
    func mayAskAgain(after fault: ExchangeError) -> Bool {
        guard case .authentication(let reason, .proxy) = fault, reason.isChallenge, let client
        else { return false }
        return !client.inputFollows
    }

    /// The fields with which a refusal tells a client how to do better.
    func appendAuthenticationFields(for fault: ExchangeError, to writer: inout HeadWriter) {
        guard case .authentication(let reason, let recipient) = fault else { return }
        if reason == .busy { writer.append(field: .retryAfter, decimal: caller.retryAfterSeconds) }
        guard reason.isChallenge, let ingress, let store = environment.policy.credentials else {
            return
        }
        let refused = reason == .required ? nil : caller.offered
        for challenge in store.challenges(ingress.methods, refused: refused) {
            writer.append(
                field: recipient == .proxy ? .proxyAuthenticate : .wwwAuthenticate,
                challenge.value.span)
        }
    }
}

/// To whom a client proves who it is.
package enum ProofRecipient: Sendable {
    /// To a proxy: Proxy-Authorization, and 407.
    case proxy
    /// To the server that a reverse listener stands for: Authorization, and 401.
    case origin
}

extension SignedTokenError {
    /// What a client is told.
    fileprivate var reason: AuthenticationReason {
        switch self {
        case .tooLong, .malformed: .credentialsUnusable
        case .expired: .credentialsExpired
        case .algorithm, .extension, .bringsKey, .type, .unknownKey, .issuer, .audience,
            .audienceForm, .noExpiry, .notYetValid, .issuedLater, .user, .groups, .signature:
            .credentialsWrong
        }
    }
}

extension AuthenticationReason {
    /// Where refusals for this reason are counted.
    fileprivate var counter: WorkerCounter {
        switch self {
        case .required, .certificateUnknown: .authenticationsMissing
        case .credentialsUnusable: .authenticationsUnusable
        case .credentialsWrong: .authenticationsWrong
        case .credentialsExpired: .authenticationsExpired
        case .credentialsRepeated: .authenticationsRepeated
        case .busy: .authenticationsBusy
        case .ended: .authenticationsEnded
        }
    }
}
