"""Every method by name. To add one: a module with the five members of `method.Method`, and a line here."""

from dpmpc_experiments.method import Method
from dpmpc_experiments.methods.cape import Cape
from dpmpc_experiments.methods.central import Central, CentralGradP
from dpmpc_experiments.methods.functional import Functional
from dpmpc_experiments.methods.gop import Gop
from dpmpc_experiments.methods.local_grad_p import LocalGradP
from dpmpc_experiments.methods.local_obj_p import LocalObjP
from dpmpc_experiments.methods.local_only import LocalOnly
from dpmpc_experiments.methods.local_out_p import LocalOutP
from dpmpc_experiments.methods.mpc_grad_p import MpcGradP
from dpmpc_experiments.methods.mpc_out_p import MpcOutP
from dpmpc_experiments.methods.pathak import Pathak
from dpmpc_experiments.methods.psgd import Psgd
from dpmpc_experiments.methods.tuned import Tuned
from dpmpc_experiments.methods.wd_dp import WdDp
from dpmpc_experiments.methods.wd_dp_local import WdDpLocal

_ALL: tuple[Method, ...] = (
    MpcGradP(),
    MpcOutP(),
    MpcOutP(name="MPC Out P (L1 Laplace)", law="laplace-l1"),
    MpcOutP(name="MPC Out P (norm)", law="norm"),
    MpcOutP(name="MPC Out P (Gaussian)", law="gaussian"),
    Psgd(),
    Psgd(name="Rajkumar and Agarwal (printed sigma*)", reading="printed"),
    Psgd(name="Rajkumar and Agarwal (as drawn)", reading="as drawn"),
    LocalOutP(),
    LocalObjP(),
    LocalObjP(name="Local Obj P (printed)", reading="printed"),
    LocalObjP(name="Local Obj P (as drawn)", reading="as drawn"),
    LocalGradP(),
    Pathak(),
    Pathak(name="LA", law="norm"),
    Gop(),
    WdDp(),
    WdDpLocal(),
    Tuned(),
    Tuned(name="Descent, tail average, theta", aware=True),
    Tuned(name="Descent, last iterate, theta", aware=True, average="none"),
    Cape(),
    Cape(name="Sites under masks", made="masks", noise="a vector of its own, by every site, under uniform masks"),
    Cape(name="Conventional", made="none", noise="one Gaussian vector, by every site"),
    Functional(),
    Functional(name="Functional (CAPE)", made="cape"),
    Functional(name="Functional (conventional)", made="none"),
    Functional(name="Functional (Laplace)", law="laplace"),
    CentralGradP(),
    Central(),
    LocalOnly(),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
