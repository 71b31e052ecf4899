//! A limited number of places: for connections, calls or streams. An address gets three quarters of them, and within an
//! address no owner keeps others out. If an address has no place left, the owner with the most places there gives up its
//! oldest one to an owner with fewer. If no place is left at all, the address with the most places gives one up.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use evoxo_access::Id;
use tokio::sync::watch;

/// How long a call may continue after its notice. Then its connection is ended, because its other end may not read.
const GRACE: Duration = Duration::from_secs(1);

/// Three quarters, but at least one.
pub(crate) fn share(of: usize) -> usize {
    (of - of / 4).max(1)
}

/// The owner of a place at an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// An identity, known by a certificate or by a session of the page.
    Identity(Id),
    /// A connection, by its number, if callers have no identities.
    Connection(u64),
    /// All callers who are not known yet, together.
    Unknown,
}

/// Tells the holder of a place that it must be left. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Notice(watch::Sender<bool>);

impl Notice {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    fn give(&self) {
        self.0.send_replace(true);
    }

    /// Completes when the place must be left.
    pub(crate) fn given(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut given = self.0.subscribe();
        async move {
            if given.wait_for(|given| *given).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The places of one kind. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Places(Arc<Inner>);

struct Inner {
    most: usize,
    of_address: usize,
    of_identity: usize,
    /// Whether, among unknown owners, the oldest makes room if nobody has more than the others.
    oldest_yields: bool,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    next: u64,
    count: usize,
    by_identity: BTreeMap<Id, usize>,
    by_address: BTreeMap<IpAddr, AtAddress>,
}

#[derive(Default)]
struct AtAddress {
    count: usize,
    /// The places of each owner, the oldest first.
    owners: BTreeMap<Owner, BTreeMap<u64, Taken>>,
}

/// A place that is taken.
struct Taken {
    notice: Notice,
    /// The notice of the connection, if the place is for a call or a stream on one.
    connection: Option<Notice>,
    held: Weak<()>,
}

/// A place, held until dropped.
pub(crate) struct Place {
    places: Places,
    address: IpAddr,
    owner: Owner,
    number: u64,
    notice: Notice,
    /// Shows whether the place has been left.
    _held: Arc<()>,
}

impl Places {
    /// Creates so many places. An address gets at most three quarters of them, and an identity three quarters of that, at all
    /// its addresses together.
    pub(crate) fn new(most: usize, oldest_yields: bool) -> Self {
        let (of_address, held) = (share(most), Mutex::default());
        Self(Arc::new(Inner { most, of_address, of_identity: share(of_address), oldest_yields, held }))
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, for something on this connection if there is one; `None` if this owner cannot get one.
    pub(crate) fn take(&self, address: IpAddr, owner: Owner, connection: Option<&Notice>) -> Option<Place> {
        let mut held = self.lock();
        if held.is_at(&owner, self.0.of_identity) {
            return None;
        }
        let here = held.by_address.get(&address).map_or(0, |at| at.count);
        let busiest = || held.by_address.iter().map(|(address, at)| (at.count, *address)).max();
        let from = match () {
            () if here >= self.0.of_address => Some(address),
            () if held.count >= self.0.most => {
                Some(busiest().filter(|(count, _)| *count > here + 1).map_or(address, |it| it.1))
            }
            () => None,
        };
        if let Some(from) = from {
            let own = held.of(&address, &owner);
            let (who, number) = match from == address {
                // Unknown callers take few of the places of known ones.
                true if owner == Owner::Unknown && 8 * own >= self.0.of_address => {
                    held.oldest_unknown(&address).filter(|_| self.0.oldest_yields)?
                }
                true => held.yields(&address, &owner, own, self.0.oldest_yields)?,
                false => held.most_of(&from, 0)?,
            };
            if let Some(taken) = held.remove(&from, &who, number) {
                taken.end();
            }
        }
        let (notice, alive) = (Notice::new(), Arc::new(()));
        let taken = Taken { notice: notice.clone(), connection: connection.cloned(), held: Arc::downgrade(&alive) };
        let number = held.add(address, &owner, taken);
        Some(Place { places: self.clone(), address, owner, number, notice, _held: alive })
    }

    /// Whether this address or owner has half of the places that it may have.
    pub(crate) fn are_crowded(&self, address: &IpAddr, owner: &Owner) -> bool {
        let held = self.lock();
        let here = held.by_address.get(address).map_or(0, |at| at.count);
        2 * here >= self.0.of_address || held.is_at(owner, self.0.of_identity.div_ceil(2))
    }
}

impl Held {
    /// Whether the owner is an identity that has at least this many places.
    fn is_at(&self, owner: &Owner, count: usize) -> bool {
        let Owner::Identity(id) = owner else { return false };
        self.by_identity.get(id).is_some_and(|has| *has >= count)
    }

    /// How many places an owner has at an address.
    fn of(&self, address: &IpAddr, owner: &Owner) -> usize {
        self.by_address.get(address).and_then(|at| at.owners.get(owner)).map_or(0, BTreeMap::len)
    }

    /// The oldest place of the owner with the most places at an address, if these are more than `more_than`.
    fn most_of(&self, address: &IpAddr, more_than: usize) -> Option<(Owner, u64)> {
        let owners = self.by_address.get(address)?.owners.iter().filter(|(_, taken)| taken.len() > more_than);
        let oldest =
            |(who, taken): (_, &BTreeMap<u64, Taken>)| Some((taken.len(), Reverse(*taken.keys().next()?), who));
        let (_, Reverse(number), who) = owners.filter_map(oldest).max()?;
        Some((Owner::clone(who), number))
    }

    /// The place at this address that makes room for an owner with `own` places there.
    fn yields(&self, address: &IpAddr, owner: &Owner, own: usize, oldest: bool) -> Option<(Owner, u64)> {
        let most = self.most_of(address, own + 1);
        let is_new = match owner {
            // An identity keeps the same number of places for a long time, so it does not displace equals.
            Owner::Identity(_) => false,
            Owner::Connection(_) => own == 0,
            Owner::Unknown => true,
        };
        if most.is_some() || !oldest || !is_new {
            return most;
        }
        self.oldest_unknown(address)
    }

    /// The oldest place at this address of an owner that is not known.
    fn oldest_unknown(&self, address: &IpAddr) -> Option<(Owner, u64)> {
        let owners = self.by_address.get(address)?.owners.iter();
        let unknown = owners.filter(|(who, _)| !matches!(who, Owner::Identity(_)));
        let first = |(who, taken): (&Owner, &BTreeMap<u64, Taken>)| Some((*taken.keys().next()?, who.clone()));
        unknown.filter_map(first).min().map(|(number, who)| (who, number))
    }

    fn add(&mut self, address: IpAddr, owner: &Owner, taken: Taken) -> u64 {
        self.next += 1;
        self.count += 1;
        if let Owner::Identity(id) = owner {
            *self.by_identity.entry(id.clone()).or_default() += 1;
        }
        let at = self.by_address.entry(address).or_default();
        at.count += 1;
        at.owners.entry(owner.clone()).or_default().insert(self.next, taken);
        self.next
    }

    fn remove(&mut self, address: &IpAddr, owner: &Owner, number: u64) -> Option<Taken> {
        let at = self.by_address.get_mut(address)?;
        let of_owner = at.owners.get_mut(owner)?;
        let taken = of_owner.remove(&number)?;
        if of_owner.is_empty() {
            at.owners.remove(owner);
        }
        at.count -= 1;
        if at.count == 0 {
            self.by_address.remove(address);
        }
        self.count -= 1;
        if let Owner::Identity(id) = owner
            && let Some(count) = self.by_identity.get_mut(id)
        {
            *count -= 1;
            if *count == 0 {
                self.by_identity.remove(id);
            }
        }
        Some(taken)
    }
}

impl Taken {
    /// Makes the holder leave.
    fn end(self) {
        self.notice.give();
        if let Some(connection) = self.connection {
            tokio::spawn(async move {
                tokio::time::sleep(GRACE).await;
                if self.held.strong_count() > 0 {
                    connection.give();
                }
            });
        }
    }
}

impl Place {
    /// The notice that the place must be left.
    pub(crate) fn notice(&self) -> &Notice {
        &self.notice
    }

    /// Assigns the place to its owner, once known. Returns false if this owner may have no more places.
    pub(crate) fn belongs_to(&mut self, owner: Owner) -> bool {
        let mut held = self.places.lock();
        if self.owner == owner {
            return true;
        }
        if held.is_at(&owner, self.places.0.of_identity) {
            return false;
        }
        if let Some(taken) = held.remove(&self.address, &self.owner, self.number) {
            self.number = held.add(self.address, &owner, taken);
        }
        self.owner = owner;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.places.lock().remove(&self.address, &self.owner, self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn at(last: usize) -> IpAddr {
        IpAddr::from([10, 0, (last / 256) as u8, (last % 256) as u8])
    }

    fn identities<const N: usize>() -> [Owner; N] {
        [(); N].map(|()| Owner::Identity(Id::draw()))
    }

    /// Whether a place must be left.
    async fn must_go(place: &Place) -> bool {
        tokio::time::timeout(Duration::ZERO, place.notice().given()).await.is_ok()
    }

    fn is_empty(places: &Places) -> bool {
        let held = places.lock();
        held.count == 0 && held.by_identity.is_empty() && held.by_address.is_empty()
    }

    #[test]
    fn an_address_gets_three_quarters_and_returns_them() {
        let places = Places::new(100, false);
        let taken: Vec<Place> =
            (0..100).filter_map(|number| places.take(HERE, Owner::Connection(number), None)).collect();
        assert_eq!(taken.len(), 75);
        assert!(places.take(at(2), Owner::Connection(0), None).is_some());
        assert!(places.are_crowded(&HERE, &Owner::Unknown) && !places.are_crowded(&at(2), &Owner::Unknown));
        drop(taken);
        assert!(is_empty(&places));
    }

    /// All connections come from behind one router.
    #[tokio::test]
    async fn the_largest_holder_at_an_address_makes_room_for_others_there() {
        let places = Places::new(100, true);
        let [one, two, three] = identities();
        let take = |who: &Owner, count: usize| -> Vec<Place> {
            (0..count).filter_map(|_| places.take(HERE, who.clone(), None)).collect()
        };
        let (of_one, of_two) = (take(&one, 100), take(&two, 100));
        // The first identity gets three quarters of the address's places; the second no more than the first still has.
        assert_eq!((of_one.len(), of_two.len()), (57, 37));
        let of_three = take(&three, 100);
        assert_eq!(of_three.len(), 25, "all have the same number in the end");
        let has = |who: &Owner| places.lock().of(&HERE, who);
        assert_eq!([&one, &two, &three].map(has), [25, 25, 25]);
        assert!(must_go(&of_one[0]).await && !must_go(&of_one[56]).await, "the oldest connection is ended first");
        assert!(!must_go(&of_three[0]).await);
        drop((of_one, of_two));
        assert_eq!([&one, &two, &three].map(has), [0, 0, 25]);
        drop(of_three);
        assert!(is_empty(&places));
    }

    #[test]
    fn an_identity_has_one_share_across_all_its_addresses() {
        let places = Places::new(160, true);
        let [one, other] = identities();
        let taken: Vec<Place> = (0..160).filter_map(|last| places.take(at(last), one.clone(), None)).collect();
        assert_eq!(taken.len(), 90);
        assert!(places.take(HERE, other, None).is_some());
    }

    /// Two addresses have all places; a third one gets as many as they have.
    #[tokio::test]
    async fn the_address_with_the_most_places_makes_room_when_full() {
        let places = Places::new(100, true);
        let take = |address: IpAddr, count: u64| -> Vec<Place> {
            (0..count).filter_map(|number| places.take(address, Owner::Connection(number), None)).collect()
        };
        let (one, two) = (take(at(1), 75), take(at(2), 25));
        let three = take(at(3), 30);
        assert_eq!((one.len(), two.len(), three.len()), (75, 25, 30));
        assert!(
            must_go(&one[0]).await && must_go(&one[29]).await && !must_go(&one[30]).await && !must_go(&two[0]).await
        );
    }

    /// A connection costs nothing, so an owner of as many as there are places must not keep others out.
    #[tokio::test]
    async fn without_identities_the_oldest_of_equals_makes_room() {
        let places = Places::new(100, true);
        let taken: Vec<Place> =
            (0..75).filter_map(|number| places.take(HERE, Owner::Connection(number), None)).collect();
        let new = Owner::Connection(99);
        let first = places.take(HERE, new.clone(), None);
        assert!(first.is_some() && must_go(&taken[0]).await && !must_go(&taken[1]).await);
        assert!(places.take(HERE, new, None).is_none(), "it has one");
        let [known] = identities();
        assert!(places.take(HERE, known, None).is_none(), "tokens limit the number of certificates");
        let mut unknown = places.take(HERE, Owner::Unknown, None).unwrap();
        assert!(must_go(&taken[1]).await);
        let [known] = identities();
        assert!(unknown.belongs_to(known.clone()));
        assert_eq!(places.lock().of(&HERE, &known), 1);
    }

    /// A caller that connects all the time without a certificate ends few connections of others.
    #[tokio::test]
    async fn unidentified_callers_take_an_eighth_of_the_places_of_others() {
        let places = Places::new(108, true);
        let [one, two] = identities();
        let take = |who: &Owner, count: usize| -> Vec<Place> {
            (0..count).filter_map(|_| places.take(HERE, who.clone(), None)).collect()
        };
        let (_of_one, _of_two) = (take(&one, 60), take(&two, 21));
        let unknown = take(&Owner::Unknown, 500);
        let has = |who: &Owner| places.lock().of(&HERE, who);
        assert_eq!((unknown.len(), has(&Owner::Unknown)), (500, 11));
        assert!(must_go(&unknown[488]).await && !must_go(&unknown[489]).await);
        assert_eq!(has(&one) + has(&two), 70);
    }

    /// The caller does not read, so it does not learn of the notice.
    #[tokio::test]
    async fn a_call_that_keeps_its_place_loses_its_connection() {
        let places = Places::new(4, true);
        let [one, two] = identities();
        let connections = [Notice::new(), Notice::new()];
        let take = |connection: &Notice| places.take(HERE, one.clone(), Some(connection)).unwrap();
        let (stays, leaves) = (take(&connections[0]), take(&connections[1]));
        let others = [two.clone(), two].map(|two| places.take(HERE, two, None));
        assert!(others[0].is_some() && others[1].is_none());
        assert!(!must_go(&stays).await);
        let [three, four] = identities();
        let _others = [three, four].map(|who| places.take(HERE, who, None));
        assert!(must_go(&stays).await && !must_go(&leaves).await);
        drop(leaves);
        tokio::time::sleep(GRACE + GRACE / 2).await;
        assert!(tokio::time::timeout(Duration::ZERO, connections[0].given()).await.is_ok());
        assert!(tokio::time::timeout(Duration::ZERO, connections[1].given()).await.is_err());
    }
}
