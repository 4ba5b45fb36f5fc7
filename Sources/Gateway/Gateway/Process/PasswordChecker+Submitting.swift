import Authentication
import PasswordChecks
import PinfoldEngine

extension PasswordChecker: PasswordChecking {
    package func submit(
        _ check: PasswordCheck, completion: @escaping @Sendable (CheckOutcome) -> Void
    ) -> PasswordSubmission {
        switch self.check(check, completion: completion) {
        case .accepted(let ticket, let isDelayed):
            .accepted(isDelayed: isDelayed) { [self] in cancel(ticket) }
        case .busy: .busy
        case .refused(let milliseconds): .refused(milliseconds: milliseconds)
        }
    }
}
