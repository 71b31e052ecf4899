//! The gRPC services: thin. They decode, ask the core, encode; what a stranger sends yields a `Status`.

pub(crate) mod accept;
pub(crate) mod run;
pub(crate) mod worker;

use tonic::Status;

use crate::core::Rejection;

impl From<Rejection> for Status {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Invalid(why) => Self::invalid_argument(why),
            Rejection::NotFound(why) => Self::not_found(why),
            Rejection::Conflict(why) => Self::failed_precondition(why),
            Rejection::Exhausted(why) => Self::resource_exhausted(why),
            Rejection::Unavailable(why) => Self::unavailable(why),
        }
    }
}
